//! The names that callers see; they never change.

/// The driver's name, as CSIDriver objects and storage classes bear it.
pub const DRIVER: &str = "csi.gabion.dev";

/// The key of the one topology segment of a node.
pub const TOPOLOGY_KEY: &str = "topology.gabion.dev/node";

/// The parameter of a storage class, and the attribute of an inline volume, that names the device class.
pub const DEVICE_CLASS: &str = "gabion.dev/device-class";

/// The attribute of an inline volume that says how large it is, as a Kubernetes quantity.
pub const SIZE: &str = "gabion.dev/size";

/// The parameter of a storage class that names the filesystem; a capability's own wins.
pub const FS_TYPE: &str = "csi.storage.k8s.io/fstype";

/// What the attribute `true` marks a volume that lives as long as its pod.
pub const EPHEMERAL: &str = "csi.storage.k8s.io/ephemeral";

/// What Kubernetes and its sidecars add of their own accord begins with one of these, and says nothing about storage.
pub const OF_KUBERNETES: [&str; 2] = ["csi.storage.k8s.io/", "storage.kubernetes.io/"];
