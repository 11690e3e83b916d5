//! Device classes and volumes on one node.
//!
//! The crate holds its place in the workspace: classes, pools, backends and the life of a volume come here,
//! composed from [`lvm`], [`bcache`] and [`devices`], without gRPC and without Kubernetes.

#![forbid(unsafe_code)]

use {bcache as _, devices as _, lvm as _};
