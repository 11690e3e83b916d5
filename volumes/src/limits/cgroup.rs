//! The cgroup in which the kernel holds limits: the one that all pods are below.

use std::fs;
use std::path::{Path, PathBuf};

use devices::DeviceNumber;
use devices::mount::MountTable;

use super::{Limit, Limited, Limits};
use crate::Error;

/// Where kubelets have the cgroups of all pods, below the mount of cgroup v2: by systemd, by the filesystem, and both below
/// a kubelet's own, as nodes in containers have them.
const OF_PODS: [&str; 4] =
    ["kubepods.slice", "kubepods", "kubelet.slice/kubelet-kubepods.slice", "kubelet/kubepods"];

/// A cgroup that can hold limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodsCgroup(PathBuf);

impl PodsCgroup {
    /// The cgroup at `given`, or that of all pods of this host. Its io controller is switched on where the host has it.
    ///
    /// # Errors
    ///
    /// Why there is none, in words.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, String> {
        let root = root()?;
        let path = match given {
            Some(path) if path.starts_with(&root) && *path != root => path.to_owned(),
            Some(path) => return Err(format!("{} is no cgroup below {}", path.display(), root.display())),
            None => OF_PODS
                .iter()
                .map(|below| root.join(below))
                .find(|path| path.is_dir())
                .ok_or_else(|| format!("{} has no cgroup of pods", root.display()))?,
        };
        switch_on(&root, &path)?;
        Ok(Self(path))
    }

    fn file(&self) -> PathBuf {
        self.0.join("io.max")
    }

    /// Has the kernel hold these limits for the device and no others.
    ///
    /// # Errors
    ///
    /// [`Kind::Internal`](crate::Kind::Internal) when the kernel does not take them.
    pub(crate) fn hold(&self, device: DeviceNumber, limits: Limits) -> Result<(), Error> {
        let (file, line, begin) = (self.file(), line(device, limits), format!("{device} "));
        if !limits.limit_something() && !self.held()?.lines().any(|line| line.starts_with(&begin)) {
            return Ok(());
        }
        fs::write(&file, &line).map_err(|cause| {
            Error::system(format!("write {line:?} to {}", file.display()), cause)
                .with_advice("see what the kernel says of this device and of cgroups")
        })
    }

    /// Whether any device is limited there.
    ///
    /// # Errors
    ///
    /// [`Kind::Internal`](crate::Kind::Internal) when the kernel does not tell.
    pub(crate) fn holds_some(&self) -> Result<bool, Error> {
        Ok(!self.held()?.trim().is_empty())
    }

    fn held(&self) -> Result<String, Error> {
        let file = self.file();
        fs::read_to_string(&file).map_err(|cause| Error::system(format!("read {}", file.display()), cause))
    }
}

/// A line of `io.max` (the kernel's Documentation/admin-guide/cgroup-v2.rst). All keys are named: those that are not keep
/// what they had.
fn line(device: DeviceNumber, limits: Limits) -> String {
    let words = Limited::ALL.map(|limited| match limits.get(limited) {
        Some(Limit::PerSecond(number)) => format!("{}={number}", limited.key()),
        Some(Limit::Unlimited) | None => format!("{}=max", limited.key()),
    });
    format!("{device} {}", words.join(" "))
}

/// Where cgroup v2 is mounted.
fn root() -> Result<PathBuf, String> {
    let table = MountTable::read().map_err(|error| error.to_string())?;
    let mounted = table.iter().find(|mount| mount.fs_type == "cgroup2");
    mounted.map(|mount| mount.mount_point.clone()).ok_or_else(|| "cgroup v2 is not mounted".to_owned())
}

/// Has the cgroup know limits of reading and writing: each cgroup above it must give its children the controller.
fn switch_on(root: &Path, path: &Path) -> Result<(), String> {
    if path.join("io.max").exists() {
        return Ok(());
    }
    let mut above: Vec<&Path> =
        path.ancestors().skip(1).take_while(|above| above.starts_with(root)).collect();
    above.reverse();
    for cgroup in above {
        let control = cgroup.join("cgroup.subtree_control");
        fs::write(&control, "+io").map_err(|cause| {
            format!("the io controller cannot be switched on in {}: {cause}", control.display())
        })?;
    }
    match path.join("io.max").exists() {
        true => Ok(()),
        false => Err(format!("{} has no io.max although the io controller is on", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_line() {
        let limits = Limits::default().with(Limited::WriteBps, "1Mi").unwrap();
        let limits = limits.with(Limited::ReadIops, "7").unwrap().with(Limited::ReadBps, "max").unwrap();
        let device = DeviceNumber { major: 253, minor: 3 };
        assert_eq!(line(device, limits), "253:3 riops=7 wiops=max rbps=max wbps=1048576");
    }
}
