//! Taking a device for oneself: the check and the use in one step.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::alone::open_alone;
use crate::discovery::{Discovery, Disk, DiskType, Inventory};
use crate::eligibility::{Assessor, Bar, Chosen, Policy, Reason, add_content, against_by_whole};
use crate::held::Held;
use crate::probe::{open, probe, unreadable, whole};
use crate::{Error, Kind};

/// A device that is held exclusively, and was looked at again after that.
///
/// The kernel gives `O_EXCL` on a block device to one holder alone, and mounts, swap, LVM and md are holders too, in
/// whatever mount namespace they live: so nobody can begin to use the device while this value lives. Dropping it lets go.
///
/// ```no_run
/// use devices::Claim;
/// use devices::discovery::Discovery;
/// use devices::eligibility::{Chosen, Policy};
///
/// let host = Discovery::host();
/// let claim = Claim::take(&host, "/dev/disk/by-id/nvme-x".as_ref(), Chosen::ByName, &Policy::default())?;
/// println!("{} is ours alone", claim.disk().path.display());
/// # Ok::<(), devices::Error>(())
/// ```
///
/// Programs that claim a device for themselves (`pvcreate`, `mkfs`) must be run after letting go, and look again.
#[derive(Debug)]
pub struct Claim {
    file: File,
    disk: Disk,
}

impl Claim {
    /// Claims the device that a path leads to, if it is eligible.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] when somebody holds it, [`Kind::Foreign`] with every reason when it is not eligible, [`Kind::Io`]
    /// when it cannot be looked at, [`Kind::Inconsistent`] when it became another device meanwhile. The device is
    /// unchanged.
    pub fn take(discovery: &Discovery, path: &Path, chosen: Chosen, policy: &Policy) -> Result<Self, Error> {
        let tried = format!("claim {}", path.display());
        let inventory = discovery.inventory()?;
        let disk = inventory.at(path)?.clone();
        let before = Assessor::new(policy.clone()).without_probing(&inventory, &disk);
        refuse(&tried, before.bars(chosen))?;
        let file = open_exclusively(&tried, &disk)?;
        let inventory = discovery.inventory()?;
        let now = still_there(&tried, &inventory, &disk)?;
        let after = Assessor::new(policy.clone()).without_probing(&inventory, now);
        // Before anything is read: what became suspended since would not answer.
        refuse(&tried, after.bars(chosen))?;
        let mut reasons = against_by_its_disk(&tried, &inventory, now)?;
        add_content(&mut reasons, probe(&file).map_err(|error| unreadable(&error)));
        let bars = |reason: &&Reason| chosen == Chosen::ByProperty || reason.bar() == Bar::Always;
        refuse(&tried, reasons.iter().filter(bars))?;
        Ok(Self { disk: now.clone(), file })
    }

    /// The device, as it was right after it was claimed.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The device, open for reading and writing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn open_exclusively(tried: &str, disk: &Disk) -> Result<File, Error> {
    let held = Held::open(&disk.path, &|| tried.to_owned())?;
    held.is_still(disk, tried)?;
    open_alone(|| held.alone()).map_err(|cause| {
        let error = Error::system(tried, cause);
        if error.kind() == Kind::InUse {
            return error
                .with_answer(Reason::Claimed.to_string())
                .with_advice("find out who uses it, in whatever mount namespace, and end that first");
        }
        error
    })
}

/// What the disk of a partition says against it. The claim of the partition keeps others from claiming the disk.
fn against_by_its_disk(tried: &str, inventory: &Inventory, disk: &Disk) -> Result<Vec<Reason>, Error> {
    let DiskType::Partition(partition) = &disk.kind else { return Ok(Vec::new()) };
    let whole = inventory.by_name(&partition.disk).ok_or_else(|| {
        Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("its disk {} went away while it was claimed", partition.disk))
    })?;
    Ok(against_by_whole(partition, &whole::look(open(whole)?.file())?))
}

/// The same device, in an inventory that was made after the claim.
fn still_there<'a>(tried: &str, inventory: &'a Inventory, disk: &Disk) -> Result<&'a Disk, Error> {
    inventory.by_number(disk.number).filter(|now| now.is_same_device(disk)).ok_or_else(|| {
        Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("{} went away, or became another device, while it was claimed", disk.name))
            .with_advice("try again")
    })
}

/// Fails with every reason, if there is one.
fn refuse<'a>(tried: &str, reasons: impl Iterator<Item = &'a Reason>) -> Result<(), Error> {
    let reasons: Vec<&Reason> = reasons.collect();
    let Some(first) = reasons.first() else { return Ok(()) };
    let kind = match first {
        Reason::Mounted { .. } | Reason::Swap | Reason::Held { .. } | Reason::Claimed => Kind::InUse,
        Reason::Unreadable { .. } | Reason::NoAnswer | Reason::Fault { .. } => Kind::Io,
        Reason::Suspended | Reason::SuspendedBelow { .. } => Kind::Io,
        _ => Kind::Foreign,
    };
    let answer: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    Err(Error::new(kind, tried).with_answer(answer.join("; ")))
}
