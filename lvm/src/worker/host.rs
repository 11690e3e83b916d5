//! What our LVM shares with the host's.

use std::path::PathBuf;

/// Settings that every program with LVM on one host must agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// Where the file locks of groups are.
    pub locking_dir: PathBuf,
    /// Where a new group's system id comes from: `none`, `lvmlocal`, `uname`, `machineid`, `appmachineid` or `file`.
    pub system_id_source: String,
    /// The file for the source `file`.
    pub system_id_file: Option<PathBuf>,
    /// The id for the source `lvmlocal`.
    pub system_id: Option<String>,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            locking_dir: PathBuf::from("/run/lock/lvm"),
            system_id_source: "none".to_owned(),
            system_id_file: None,
            system_id: None,
        }
    }
}
