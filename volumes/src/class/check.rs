//! What of a class cannot be right, beyond what its types say.

use devices::Bytes;
use devices::filesystem::{FsType, MakeOptions};
use devices::mount::MountOptions;

use super::{
    DeviceClass, DirectoryPool, Integrity, Layout, OnDelete, Pool, Raid, RaidLevel, Size, ThinPool,
    VolumeDefaults,
};
use crate::Error;

pub(super) fn check(class: &DeviceClass) -> Result<(), Error> {
    let spec = &class.spec;
    if let Some(selector) = &spec.node_selector {
        selector.check()?;
    }
    check_devices(class)?;
    match &spec.pool {
        Pool::Lvm(pool) => check_layout(pool.layout, "spec.pool.lvm.layout")?,
        Pool::Thin(pool) => check_thin(pool)?,
        Pool::Directory(pool) => check_directory(pool, &spec.volume)?,
        Pool::Partition(_) => {}
    }
    if class.volume_group().is_none() && matches!(spec.pool, Pool::Lvm(_) | Pool::Thin(_)) {
        return Err(Error::invalid("spec.pool", "no volume group can be named after the class; name one"));
    }
    let fs = spec.volume.fs_type.unwrap_or(FsType::Ext4);
    MakeOptions::parse(fs, &spec.volume.mkfs_options)
        .map_err(|error| Error::invalid("spec.volume.mkfsOptions", error))?;
    MountOptions::parse(&spec.volume.mount_options)
        .map_err(|error| Error::invalid("spec.volume.mountOptions", error))?;
    if !spec.volume.qos.is_empty() && !class.abilities().limits {
        return Err(Error::invalid(
            "spec.volume.qos",
            "the kernel limits reading and writing of whole devices, and its volumes are none",
        ));
    }
    if spec.group_snapshots {
        return Err(Error::invalid("spec.groupSnapshots", "they are not offered yet"));
    }
    check_policies(class)
}

fn check_devices(class: &DeviceClass) -> Result<(), Error> {
    let devices = &class.spec.devices;
    let selector = class.selector();
    let selects_nothing =
        devices.paths.is_empty() && devices.optional_paths.is_empty() && devices.matches.is_empty();
    match (&devices.shared_with, &class.spec.pool) {
        (Some(_), Pool::Partition(_) | Pool::Directory(_)) => {
            Err(Error::invalid("spec.devices.sharedWith", "only classes in volume groups share"))
        }
        (Some(_), _) if !selects_nothing => Err(Error::invalid(
            "spec.devices",
            "a class that shares with another one has no disks of its own",
        )),
        (Some(other), _) if *other == class.name => {
            Err(Error::invalid("spec.devices.sharedWith", "it names the class itself"))
        }
        (Some(_), _) => Ok(()),
        (None, Pool::Directory(_)) if selects_nothing => Ok(()),
        (None, Pool::Directory(_)) => Err(Error::invalid(
            "spec.devices",
            "a directory lies in a filesystem that is there; it takes no disks",
        )),
        (None, _) => selector.check().map_err(|error| Error::invalid("spec.devices", error)),
    }
}

fn check_layout(layout: Layout, field: &str) -> Result<(), Error> {
    match layout {
        Layout::Linear(_) => Ok(()),
        Layout::Striped(striped) => {
            let field = format!("{field}.striped");
            in_range(&field, "stripes", striped.stripes, 2, 128)?;
            check_stripe_size(&field, striped.stripe_size)
        }
        Layout::Raid(raid) => check_raid(raid, &format!("{field}.raid")),
    }
}

/// Most legs that LVM gives one volume.
const LEGS_MAX: u32 = 64;

fn check_raid(raid: Raid, field: &str) -> Result<(), Error> {
    let only = |name: &str, given: bool, levels: &[RaidLevel], of: &str| match given
        && !levels.contains(&raid.level)
    {
        true => Err(Error::invalid(format!("{field}.{name}"), format!("it is for {of}"))),
        false => Ok(()),
    };
    let (copied, striped) = (
        [RaidLevel::One, RaidLevel::Ten],
        [RaidLevel::Four, RaidLevel::Five, RaidLevel::Six, RaidLevel::Ten],
    );
    only("mirrors", raid.mirrors.is_some(), &copied, "levels 1 and 10")?;
    only("stripes", raid.stripes.is_some(), &striped, "levels 4, 5, 6 and 10")?;
    only("stripeSize", raid.stripe_size.is_some(), &striped, "levels 4, 5, 6 and 10")?;
    if let Some(mirrors) = raid.mirrors {
        in_range(field, "mirrors", mirrors, 1, 9)?;
    }
    if let Some(stripes) = raid.stripes {
        let (least, most) = match raid.level {
            RaidLevel::Six => (3, LEGS_MAX - 2),
            RaidLevel::Ten => (2, LEGS_MAX / 2),
            RaidLevel::One | RaidLevel::Four | RaidLevel::Five => (2, LEGS_MAX - 1),
        };
        in_range(field, "stripes", stripes, least, most)?;
    }
    let legs = Layout::Raid(raid).to_lvm().legs();
    if legs > LEGS_MAX {
        return Err(Error::invalid(field, format!("it has {legs} legs; LVM takes {LEGS_MAX}")));
    }
    if raid.integrity != Integrity::None {
        let why = "checksums of blocks are not offered yet: LVM does not grow volumes that have them";
        return Err(Error::invalid(format!("{field}.integrity"), why));
    }
    check_stripe_size(field, raid.stripe_size)
}

fn in_range(field: &str, name: &str, value: u32, least: u32, most: u32) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("{field}.{name}"), format!("it is {value}; {least} to {most} can be had")))
}

fn check_stripe_size(field: &str, size: Option<Size>) -> Result<(), Error> {
    match size {
        Some(Size(size)) if !size.get().is_power_of_two() || size < Bytes::kib(4) || size > Bytes::mib(4) => {
            Err(Error::invalid(
                format!("{field}.stripeSize"),
                format!("it is {size}; powers of two from 4 KiB to 4 MiB can be had"),
            ))
        }
        _ => Ok(()),
    }
}

fn check_thin(pool: &ThinPool) -> Result<(), Error> {
    check_layout(pool.layout, "spec.pool.thin.layout")?;
    let percent = |field: &str, value: u8, least: u8| {
        if (least..=100).contains(&value) {
            return Ok(());
        }
        Err(Error::invalid(
            format!("spec.pool.thin.{field}"),
            format!("it is {value}; {least} to 100 percent can be had"),
        ))
    };
    percent("sizePercent", pool.size_percent, 1)?;
    percent("autoExtend.threshold", pool.auto_extend.threshold, 50)?;
    percent("autoExtend.by", pool.auto_extend.by, 1)?;
    percent("refuseAt.data", pool.refuse_at.data, 1)?;
    percent("refuseAt.metadata", pool.refuse_at.metadata, 1)
}

/// A directory lies in a filesystem that others made and mounted, and that others use.
fn check_directory(pool: &DirectoryPool, volume: &VolumeDefaults) -> Result<(), Error> {
    if !pool.path.is_absolute() {
        return Err(Error::invalid("spec.pool.directory.path", "it is not an absolute path"));
    }
    if !volume.mkfs_options.is_empty() {
        return Err(Error::invalid("spec.volume.mkfsOptions", "a directory gets no filesystem of its own"));
    }
    if volume.on_delete == OnDelete::Zero {
        return Err(Error::invalid(
            "spec.volume.onDelete",
            "where a filesystem keeps a file's bytes is its own matter, so they cannot be zeroed",
        ));
    }
    MountOptions::parse(&volume.mount_options)
        .and_then(|options| options.require_of_mount_alone())
        .map_err(|error| Error::invalid("spec.volume.mountOptions", error))
}

fn check_policies(class: &DeviceClass) -> Result<(), Error> {
    let one_of = |field: &str, value: Option<&str>, known: [&str; 2]| match value {
        Some(value) if !known.contains(&value) => {
            Err(Error::invalid(field, format!("it is {value:?}; {} or {} can be had", known[0], known[1])))
        }
        _ => Ok(()),
    };
    let storage = &class.spec.storage_class;
    let reclaim = ["Delete", "Retain"];
    one_of("spec.storageClass.reclaimPolicy", storage.reclaim_policy.as_deref(), reclaim)?;
    let binding = ["WaitForFirstConsumer", "Immediate"];
    one_of("spec.storageClass.volumeBindingMode", storage.volume_binding_mode.as_deref(), binding)?;
    one_of("spec.snapshotClass.deletionPolicy", class.spec.snapshot_class.deletion_policy.as_deref(), reclaim)
}

/// What several classes cannot be at the same time.
pub(crate) fn check_together(classes: &[DeviceClass]) -> Result<(), Error> {
    for (at, class) in classes.iter().enumerate() {
        let before = &classes[..at];
        if before.iter().any(|other| other.name == class.name) {
            return Err(Error::invalid("metadata.name", format!("two classes are called {}", class.name)));
        }
        if class.spec.default
            && let Some(other) = before.iter().find(|other| other.spec.default)
        {
            return Err(Error::invalid(
                "spec.default",
                format!("{} and {} both are the default", other.name, class.name),
            ));
        }
        if let Some(shared) = &class.spec.devices.shared_with {
            check_shared(class, classes.iter().find(|other| other.name == *shared))?;
        }
        let same_group = |other: &&DeviceClass| {
            other.volume_group().is_some() && other.volume_group() == class.volume_group()
        };
        if class.spec.devices.shared_with.is_none()
            && let Some(other) =
                before.iter().filter(|other| other.spec.devices.shared_with.is_none()).find(same_group)
        {
            return Err(Error::invalid(
                "spec.pool",
                format!(
                    "{} and {} name the same volume group; one shares with the other",
                    other.name, class.name
                ),
            ));
        }
    }
    Ok(())
}

fn check_shared(class: &DeviceClass, with: Option<&DeviceClass>) -> Result<(), Error> {
    let field = "spec.devices.sharedWith";
    let Some(with) = with else {
        return Err(Error::invalid(field, format!("class {} names a class that is not there", class.name)));
    };
    if with.spec.devices.shared_with.is_some() {
        return Err(Error::invalid(field, format!("class {} shares with a third one itself", with.name)));
    }
    if with.volume_group().is_none() {
        return Err(Error::invalid(field, format!("class {} has no volume group", with.name)));
    }
    let named = match &class.spec.pool {
        Pool::Lvm(pool) => pool.volume_group.as_ref(),
        Pool::Thin(pool) => pool.volume_group.as_ref(),
        Pool::Partition(_) | Pool::Directory(_) => None,
    };
    if named.is_some() && named != with.volume_group().as_ref() {
        return Err(Error::invalid("spec.pool", format!("class {} has another volume group", with.name)));
    }
    Ok(())
}
