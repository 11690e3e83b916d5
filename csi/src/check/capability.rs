//! How a volume is to be used: a `VolumeCapability`, made into what the library takes.

use devices::mount::MountOptions;
use tonic::Status;
use volumes::{Access, FsType, Mode, Sharing};

use super::MAP;
use crate::proto::VolumeCapability;
use crate::proto::volume_capability::{AccessType, MountVolume, access_mode};
use crate::status::{invalid, shown};

/// How a volume is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) mode: Mode,
    /// What the caller named; `None` for the class's own.
    pub(crate) fs_type: Option<FsType>,
    pub(crate) mount_options: Vec<String>,
    pub(crate) access: Access,
    pub(crate) sharing: Sharing,
}

/// The capability of a request that has one.
pub(crate) fn one_use(field: &str, given: Option<&VolumeCapability>) -> Result<Use, Status> {
    let given = given.ok_or_else(|| invalid(field, "it is missing"))?;
    let (access, sharing) = access(&format!("{field}.access_mode"), given)?;
    match &given.access_type {
        None => Err(invalid(&format!("{field}.access_type"), "it is missing")),
        Some(AccessType::Block(_)) => {
            Ok(Use { mode: Mode::Block, fs_type: None, mount_options: Vec::new(), access, sharing })
        }
        Some(AccessType::Mount(mount)) => {
            let field = format!("{field}.mount");
            let fs_type = fs_type(&format!("{field}.fs_type"), &mount.fs_type)?;
            let mount_options = options(&field, mount)?;
            Ok(Use { mode: Mode::Filesystem, fs_type, mount_options, access, sharing })
        }
    }
}

/// The capabilities of a request that must have some, which must not contradict each other.
pub(crate) fn every_use(field: &str, given: &[VolumeCapability]) -> Result<Vec<Use>, Status> {
    if given.is_empty() {
        return Err(invalid(field, "it is missing"));
    }
    let uses: Vec<Use> = given.iter().map(|given| one_use(field, Some(given))).collect::<Result<_, _>>()?;
    let mut named = uses.iter().filter_map(|wanted| wanted.fs_type);
    let first = named.next();
    if named.any(|other| Some(other) != first) {
        return Err(invalid(field, "a volume carries one filesystem, and several are named"));
    }
    Ok(uses)
}

fn access(field: &str, given: &VolumeCapability) -> Result<(Access, Sharing), Status> {
    use access_mode::Mode as Asked;
    let mode = given.access_mode.ok_or_else(|| invalid(field, "it is missing"))?.mode;
    match Asked::try_from(mode) {
        Ok(Asked::SingleNodeWriter | Asked::SingleNodeMultiWriter) => {
            Ok((Access::ReadWrite, Sharing::Shared))
        }
        Ok(Asked::SingleNodeSingleWriter) => Ok((Access::ReadWrite, Sharing::Alone)),
        Ok(Asked::SingleNodeReaderOnly) => Ok((Access::ReadOnly, Sharing::Shared)),
        Ok(Asked::MultiNodeReaderOnly | Asked::MultiNodeSingleWriter | Asked::MultiNodeMultiWriter) => {
            Err(invalid(field, "a local volume can be used on its own node alone"))
        }
        Ok(Asked::Unknown) => Err(invalid(field, "it says nothing")),
        Err(_) => Err(invalid(field, format!("there is no mode {mode}"))),
    }
}

/// A filesystem's name; nothing where none is named.
pub(super) fn fs_type(field: &str, given: &str) -> Result<Option<FsType>, Status> {
    if given.is_empty() {
        return Ok(None);
    }
    let why = || invalid(field, format!("{} is none of ext4, xfs, btrfs", shown(given)));
    given.parse().map(Some).map_err(|_| why())
}

fn options(field: &str, mount: &MountVolume) -> Result<Vec<String>, Status> {
    if !mount.volume_mount_group.is_empty() {
        return Err(invalid(
            &format!("{field}.volume_mount_group"),
            "these filesystems have no group for all their files; the kubelet sets it (fsGroup)",
        ));
    }
    let field = format!("{field}.mount_flags");
    let length: usize = mount.mount_flags.iter().map(String::len).sum();
    if length > MAP {
        return Err(invalid(&field, format!("they have {length} bytes; {MAP} are taken")));
    }
    MountOptions::parse(&mount.mount_flags).map_err(|error| invalid(&field, error))?;
    Ok(mount.mount_flags.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tonic::Code;

    use super::*;
    use crate::proto::volume_capability::{AccessMode, BlockVolume};

    fn mount(fs_type: &str, flags: &[&str], mode: i32) -> VolumeCapability {
        let mount = MountVolume {
            fs_type: fs_type.into(),
            mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            volume_mount_group: String::new(),
        };
        VolumeCapability {
            access_mode: Some(AccessMode { mode }),
            access_type: Some(AccessType::Mount(mount)),
        }
    }

    #[test]
    fn modes_of_one_node_are_taken_and_all_others_are_not() {
        let taken =
            |mode| one_use("c", Some(&mount("", &[], mode))).map(|wanted| (wanted.access, wanted.sharing));
        assert_eq!(taken(1).unwrap(), (Access::ReadWrite, Sharing::Shared));
        assert_eq!(taken(2).unwrap(), (Access::ReadOnly, Sharing::Shared));
        assert_eq!(taken(6).unwrap(), (Access::ReadWrite, Sharing::Alone));
        assert_eq!(taken(7).unwrap(), (Access::ReadWrite, Sharing::Shared));
        for mode in [0, 3, 4, 5, 8, -1, i32::MAX] {
            assert_eq!(taken(mode).unwrap_err().code(), Code::InvalidArgument, "{mode}");
        }
    }

    #[test]
    fn what_a_capability_lacks_is_named() {
        let block = AccessType::Block(BlockVolume {});
        let lacking = [
            (None, "c: "),
            (Some(VolumeCapability { access_mode: None, access_type: Some(block) }), "c.access_mode: "),
            (
                Some(VolumeCapability { access_mode: Some(AccessMode { mode: 1 }), access_type: None }),
                "c.access_type: ",
            ),
            (Some(mount("ntfs", &[], 1)), "c.mount.fs_type: "),
            (Some(mount(&"x".repeat(1 << 20), &[], 1)), "c.mount.fs_type: "),
            (Some(mount("", &["remount"], 1)), "c.mount.mount_flags: "),
            (Some(mount("", &["a\nb"], 1)), "c.mount.mount_flags: "),
            (Some(mount("", &[&"x".repeat(1 << 20)], 1)), "c.mount.mount_flags: "),
        ];
        for (given, field) in lacking {
            let refusal = one_use("c", given.as_ref()).unwrap_err();
            assert_eq!(refusal.code(), Code::InvalidArgument);
            assert!(refusal.message().starts_with(field), "{field}{}", refusal.message());
        }
        let mut grouped = mount("", &[], 1);
        if let Some(AccessType::Mount(mount)) = &mut grouped.access_type {
            mount.volume_mount_group = "1000".into();
        }
        assert!(one_use("c", Some(&grouped)).is_err());
    }

    #[test]
    fn a_volume_has_one_filesystem() {
        let (ext4, xfs, any) = (mount("ext4", &[], 1), mount("xfs", &[], 1), mount("", &[], 1));
        assert!(every_use("c", &[]).is_err());
        assert!(every_use("c", &[ext4.clone(), xfs]).is_err());
        assert_eq!(every_use("c", &[any, ext4.clone(), ext4]).unwrap().len(), 3);
    }

    proptest! {
        #[test]
        fn no_capability_panics(fs in "\\PC{0,20}|ext4|xfs", flags in proptest::collection::vec("\\PC{0,20}", 0..4), mode: i32) {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            if let Ok(taken) = one_use("c", Some(&mount(&fs, &flags, mode))) {
                prop_assert!([1, 2, 6, 7].contains(&mode) && taken.mode == Mode::Filesystem);
            }
        }
    }
}
