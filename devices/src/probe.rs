//! What is on a device: every signature that libblkid knows.
//!
//! libblkid looks through the `libblkid-rs` crate at the exact descriptor that was opened. It keeps silent about sectors
//! that cannot be read and calls such a device blank; so both ends are read first, and an error there is an error.

pub(crate) mod whole;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libblkid_rs::{BlkidErr, BlkidProbe, BlkidProbeRet, BlkidSafeprobeRet, BlkidSublks, BlkidSublksFlags};

use crate::discovery::Disk;
use crate::eligibility::Reason;
use crate::held::Held;
use crate::leftover::gpt_header;
use crate::{Bytes, DeviceNumber, Error, Kind, signature_ends};

/// What a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Usage {
    /// A filesystem.
    Filesystem,
    /// A member of an array, or a PV.
    Raid,
    /// Encrypted data.
    Crypto,
    /// A partition table.
    PartitionTable,
    /// Swap, bcache and others.
    Other,
}

/// One signature on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// What libblkid calls it: `ext4`, `LVM2_member`, `gpt`.
    pub kind: String,
    /// What it is for.
    pub usage: Usage,
    /// Its label.
    pub label: Option<String>,
    /// Its uuid, as its maker writes it.
    pub uuid: Option<String>,
    /// Where its magic bytes are, counted from the beginning of the device.
    pub offset: Option<Bytes>,
}

/// What a look at a device gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// Nothing that libblkid knows.
    Blank,
    /// These, which can live beside each other.
    Found(Vec<Signature>),
    /// These, which contradict each other.
    Ambiguous(Vec<Signature>),
}

/// Looks at what is on an open block device or image.
///
/// # Errors
///
/// [`Kind::Io`] when an end of the device cannot be read, [`Kind::Other`] when libblkid fails.
pub fn probe(file: &File) -> Result<Probed, Error> {
    read_ends(file).map_err(|cause| Error::system("read both ends of the device", cause))?;
    let mut signatures = every_signature(file).map_err(|cause| failed(&cause))?;
    if signatures.iter().all(|found| found.usage != Usage::PartitionTable) {
        let header = size_of(file).and_then(|size| gpt_header(file, size));
        signatures.extend(header.map_err(|cause| Error::system("look for a GPT on the device", cause))?);
    }
    let mut verdict = prepared(file).map_err(|cause| failed(&cause))?;
    match verdict.do_safeprobe().map_err(|cause| failed(&cause))? {
        BlkidSafeprobeRet::None if signatures.is_empty() => Ok(Probed::Blank),
        BlkidSafeprobeRet::Ambiguous => Ok(Probed::Ambiguous(signatures)),
        BlkidSafeprobeRet::None | BlkidSafeprobeRet::Success => {
            if signatures.is_empty() {
                signatures.extend(signature(&verdict));
            }
            Ok(Probed::Found(signatures))
        }
    }
}

fn failed(cause: &BlkidErr) -> Error {
    Error::new(Kind::Other, "look for signatures with libblkid")
        .with_answer(cause.to_string())
        .with_advice("whether something is on the device is not known, so it is not used")
}

/// Fails when a sector that signatures lie in cannot be read.
fn read_ends(file: &File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    for end in signature_ends(Bytes::new(size_of(file)?)) {
        let (mut at, to) = (end.start.get(), end.end.get());
        while at < to {
            let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(buffer.len());
            match file.read_at(buffer.get_mut(..want).unwrap_or_default(), at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => at += u64::try_from(got).unwrap_or(u64::MAX),
            }
        }
    }
    Ok(())
}

fn size_of(file: &File) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    // Position matters to nobody here: everything is read at an offset of its own.
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

/// A probe of the descriptor, with every chain and value switched on.
fn prepared(file: &File) -> Result<BlkidProbe, BlkidErr> {
    let mut probe = BlkidProbe::new()?;
    probe.set_device(file.as_raw_fd(), 0, 0)?;
    probe.enable_superblocks(true)?;
    probe.set_superblock_flags(BlkidSublksFlags::new(vec![
        BlkidSublks::Type,
        BlkidSublks::Usage,
        BlkidSublks::Label,
        BlkidSublks::Uuid,
        BlkidSublks::Magic,
        // What has a wrong checksum may still be somebody's data.
        BlkidSublks::Badcsum,
    ]))?;
    probe.enable_partitions(true)?;
    Ok(probe)
}

fn every_signature(file: &File) -> Result<Vec<Signature>, BlkidErr> {
    let mut probe = prepared(file)?;
    let mut found: Vec<Signature> = Vec::new();
    while probe.do_probe()? == BlkidProbeRet::Success {
        if let Some(signature) = signature(&probe)
            && !found.contains(&signature)
        {
            found.push(signature);
        }
    }
    Ok(found)
}

/// Wipes each superblock's magic bytes, as libblkid does it. Partition tables stay: their magic bytes cannot be asked
/// for through the crate, and they lie at the ends of a device anyhow.
#[cfg(feature = "erase")]
pub(crate) fn wipe_superblocks(file: &File) -> Result<(), Error> {
    // More than libblkid knows kinds, each at several places.
    const LIMIT: usize = 1000;
    let wiped = || -> Result<(), BlkidErr> {
        let mut probe = prepared(file)?;
        probe.enable_partitions(false)?;
        for _ in 0..LIMIT {
            if probe.do_probe()? != BlkidProbeRet::Success {
                break;
            }
            probe.do_wipe(false)?;
        }
        Ok(())
    };
    wiped().map_err(|cause| {
        Error::new(Kind::Other, "wipe signatures with libblkid")
            .with_answer(cause.to_string())
            .with_effect(crate::Effect::Unknown)
    })
}

fn signature(probe: &BlkidProbe) -> Option<Signature> {
    // A value that is not there is an error to the library.
    let value = |name: &str| {
        let text = probe.lookup_value(name).ok()?;
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    if let Some(kind) = value("TYPE") {
        let usage = match value("USAGE").as_deref() {
            Some("filesystem") => Usage::Filesystem,
            Some("raid") => Usage::Raid,
            Some("crypto") => Usage::Crypto,
            _ => Usage::Other,
        };
        let offset = value("SBMAGIC_OFFSET").and_then(|text| text.parse().ok()).map(Bytes::new);
        return Some(Signature { kind, usage, label: value("LABEL"), uuid: value("UUID"), offset });
    }
    let kind = value("PTTYPE")?;
    let offset = value("PTMAGIC_OFFSET").and_then(|text| text.parse().ok()).map(Bytes::new);
    Some(Signature { kind, usage: Usage::PartitionTable, label: None, uuid: value("PTUUID"), offset })
}

/// Devices at which a thread is looking now. A thread that hangs in the kernel cannot be ended; so nobody starts a second
/// one at the same device, whichever prober he has.
static UNDER_WAY: Mutex<BTreeSet<DeviceNumber>> = Mutex::new(BTreeSet::new());

/// Looks at devices with a time limit, each in a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct Prober {
    deadline: Instant,
}

impl Prober {
    /// Everything that is started now must be done within this time.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience }
    }

    /// Opens the device for reading and looks at it. Never call it for a device that is suspended, or that is made of one.
    pub(crate) fn start(&self, disk: &Disk) -> Pending<Probed> {
        self.look(disk, probe)
    }

    /// The same with another kind of look.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        disk: &Disk,
        look: fn(&File) -> Result<T, Error>,
    ) -> Pending<T> {
        let (answer, pending) = mpsc::channel();
        if disk.is_suspended() {
            return Pending::known(Reason::Suspended);
        }
        let number = disk.number;
        let under_way = || UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        if !under_way().insert(number) {
            // Another look is not finished. Wait for nothing: it had its own time.
            return Pending::known(Reason::NoAnswer);
        }
        let disk = disk.clone();
        let started = thread::Builder::new().name(format!("probe {}", disk.name)).spawn(move || {
            let result = open(&disk).and_then(|held| look(held.file()));
            under_way().remove(&number);
            // Whoever asked may have given up.
            let _ = answer.send(result);
        });
        match started {
            Ok(_) => Pending { answer: pending, deadline: self.deadline, known: None },
            Err(cause) => {
                under_way().remove(&number);
                Pending::known(Reason::Unreadable { answer: format!("could not start a thread: {cause}") })
            }
        }
    }
}

/// A look that is under way.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    answer: Receiver<Result<T, Error>>,
    deadline: Instant,
    known: Option<Reason>,
}

impl<T> Pending<T> {
    fn known(reason: Reason) -> Self {
        Self { answer: mpsc::channel().1, deadline: Instant::now(), known: Some(reason) }
    }

    /// What was found, or why nothing could be.
    pub(crate) fn wait(self) -> Result<T, Reason> {
        if let Some(reason) = self.known {
            return Err(reason);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.answer.recv_timeout(left) {
            Ok(Ok(probed)) => Ok(probed),
            Ok(Err(error)) => Err(unreadable(&error)),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Reason::NoAnswer),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Reason::Unreadable { answer: "the thread that looked at it ended".to_owned() })
            }
        }
    }
}

/// The error as a reason, with its cause.
pub(crate) fn unreadable(error: &Error) -> Reason {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Reason::Unreadable { answer: format!("{error}{cause}") }
}

/// Opens the device for reading, and makes sure that it is the one that the inventory showed.
pub(crate) fn open(disk: &Disk) -> Result<Held, Error> {
    let tried = || format!("open {}", disk.path.display());
    let held = Held::open(&disk.path, &tried)?;
    held.is_still(disk, &tried())?;
    Ok(held)
}
