//! The command line of the CSI driver.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use csi::{Alpha, Endpoint, Place};
use volumes::Owner;

/// What `gabion node` takes.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// The device classes: a YAML file with DeviceClass objects, as the Kubernetes API takes them
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Who makes volumes here
    #[arg(long, value_enum)]
    pub(crate) controller: ControllerMode,
    /// The unix socket to serve on
    #[arg(long, env = "CSI_ENDPOINT", value_name = "unix:///PATH")]
    pub(crate) csi_endpoint: Endpoint,
    /// The node's name; the host's name where it is not given
    #[arg(long, env = "GABION_NODE_NAME", value_name = "NAME", value_parser = Place::new)]
    pub(crate) node_name: Option<Place>,
    /// What is said of the node, by which classes select their nodes; may be repeated. The label kubernetes.io/hostname is the
    /// node's name where it is not given
    #[arg(long = "node-label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) node_labels: Vec<(String, String)>,
    /// Whose volumes these are; the machine's id where it is not given. Volumes of others are never touched
    #[arg(long, env = "GABION_OWNER", value_name = "ID")]
    pub(crate) owner: Option<Owner>,
    /// The cgroup that all users of volumes are below, in which limits of reading and writing are held; that of all pods where
    /// it is not given
    #[arg(long, value_name = "PATH")]
    pub(crate) pods_cgroup: Option<PathBuf>,
    /// Offer what the CSI specification calls alpha, too; callers older than that may refuse the driver
    #[arg(long)]
    csi_alpha: bool,
}

impl NodeArguments {
    pub(crate) fn alpha(&self) -> Alpha {
        if self.csi_alpha { Alpha::Offered } else { Alpha::Withheld }
    }
}

/// Who makes volumes on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControllerMode {
    /// This very process, on the disks of this node
    Local,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written KEY=VALUE".to_owned()),
    }
}
