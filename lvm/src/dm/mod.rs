//! Device-mapper by its own ioctls, for reading: tables, status, dependencies, events.
//!
//! LVM is not asked and no lock of its is taken: an answer costs well under a millisecond, and none waits for
//! a disk (status is always read without flushing). Tables are changed by LVM alone, in the worker.
//!
//! ```no_run
//! use lvm::dm::{Dm, Slot};
//!
//! let dm = Dm::open()?;
//! for device in dm.list()? {
//!     println!("{} {}", device.number, device.name);
//!     for line in dm.table(device.number, Slot::Live)?.segments {
//!         println!("  {line:?}");
//!     }
//! }
//! # Ok::<(), lvm::Error>(())
//! ```

mod device;
mod events;
mod ioctl;
mod line;
mod live;
mod name;
mod status;
mod table;
mod wire;

use std::fs::{File, OpenOptions};

use rustix::io::Errno;

use crate::{Error, Kind};
use devices::DeviceNumber;
use ioctl::{Header, Request, flag};

pub use device::{Activity, Info, Listed, Slot, TargetVersion, Version};
pub use events::{Changed, Events, Waker, Woken};
pub use line::LineError;
pub use live::LvmListed;
pub use name::{DmName, DmNameError, DmUuid, Id, LvmDevice};
pub use status::{
    CacheMode, CacheStatus, CacheUse, Discards, Fill, IntegrityStatus, LegHealth, MirrorStatus, PoolMode,
    RaidStatus, SnapshotStatus, Status, StatusLine, StripedStatus, SyncAction, ThinPoolStatus, ThinPoolUse,
    ThinStatus, WhenFull, WritecacheStatus,
};
pub use table::{CacheTable, Place, RaidLeg, SnapshotTable, Table, Target, TargetLine, ThinPoolTable};

/// Where the kernel takes device-mapper requests.
const CONTROL: &str = "/dev/mapper/control";
/// Room for the answer of a first try; enough for some 100 devices or lines.
const FIRST_ROOM: usize = 16 << 10;
/// No honest answer is longer.
const LAST_ROOM: usize = 64 << 20;

/// A descriptor of its own on the kernel's device-mapper.
///
/// It can be shared between threads; each request has its own buffer.
#[derive(Debug)]
pub struct Dm {
    control: File,
}

/// What came back: the header and the bytes after it.
struct Answer {
    header: Header,
    bytes: Vec<u8>,
}

impl Answer {
    /// The data part, decoded by `read`.
    fn decode<T>(
        &self,
        tried: &str,
        read: impl FnOnce(&Header, &[u8]) -> Result<T, wire::Malformed>,
    ) -> Result<T, Error> {
        let decoded = wire::split(&self.bytes).and_then(|(header, data)| read(&header, data));
        decoded.map_err(|malformed| {
            Error::new(Kind::Inconsistent, tried).with_answer(malformed.to_string()).with_source(malformed)
        })
    }
}

impl Dm {
    /// Opens the kernel's device-mapper.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] if this kernel has none, [`Kind::Io`] if it may not be opened.
    pub fn open() -> Result<Self, Error> {
        let opened = OpenOptions::new().read(true).write(true).open(CONTROL);
        let control = opened.map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let missing = missing || error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
            let kind = if missing { Kind::Unsupported } else { Kind::Io };
            Error::new(kind, format!("open {CONTROL}"))
                .with_answer(error.to_string())
                .with_advice("load the module dm_mod and run as root")
                .with_source(error)
        })?;
        Ok(Self { control })
    }

    /// The version of the kernel's interface.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the kernel refuses.
    pub fn version(&self) -> Result<Version, Error> {
        let answer =
            self.ask(Request::Version, &Header::default(), &[], "ask for device-mapper's version")?;
        let [major, minor, patch] = answer.header.version;
        Ok(Version { major, minor, patch })
    }

    /// Every device, with its event number and uuid.
    ///
    /// Kernels before 5.13 do not list uuids; then each device is asked for its own, and one that vanishes
    /// meanwhile is left out.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsupported`] before Linux 4.14, whose list has no event numbers; [`Kind::Io`] if the kernel
    /// refuses.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let tried = "list the device-mapper devices";
        let answer = self.ask(Request::ListDevices, &Header::default(), &[], tried)?;
        let entries = answer.decode(tried, wire::names)?;
        let mut list = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(event_nr) = entry.event_nr else {
                return Err(Error::new(Kind::Unsupported, tried)
                    .with_answer("the list has no event numbers")
                    .with_advice("Linux 4.14 or later is needed"));
            };
            let uuid = match entry.uuid {
                Some(uuid) => uuid.map(DmUuid::from_kernel),
                None => match self.info(entry.number) {
                    Ok(info) => info.uuid,
                    Err(error) if error.kind() == Kind::NotFound => continue,
                    Err(error) => return Err(error),
                },
            };
            let name = DmName::from_kernel(entry.name);
            list.push(Listed { number: entry.number, name, uuid, event_nr });
        }
        Ok(list)
    }

    /// What the kernel knows of one device besides its table.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such device.
    pub fn info<'a>(&self, id: impl Into<Id<'a>>) -> Result<Info, Error> {
        let id = id.into();
        let tried = format!("look up device-mapper device {id}");
        let answer = self.ask(Request::DevStatus, &header(id, 0), &[], &tried)?;
        Ok(Info::from_header(answer.header))
    }

    /// A device's table; an empty one if the slot holds none.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such device, [`Kind::Inconsistent`] if a known target's line is not
    /// understood.
    pub fn table<'a>(&self, id: impl Into<Id<'a>>, slot: Slot) -> Result<Table, Error> {
        let id = id.into();
        let tried = format!("read the table of device-mapper device {id}");
        // With secure data the kernel wipes its own copy, which for dm-crypt holds a key.
        let flags = flag::STATUS_TABLE | flag::SECURE_DATA;
        let entries = self.targets_of(id, flags, slot, &tried)?;
        let segments = entries.into_iter().map(|entry| {
            let target = Target::parse(&entry.kind, &entry.text)?;
            Ok(TargetLine { start: entry.start, len: entry.len, target })
        });
        let segments = segments.collect::<Result<_, LineError>>().map_err(|error| misread(&tried, error))?;
        Ok(Table { segments })
    }

    /// A device's status, line by line of its live table, without flushing anything first.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such device, [`Kind::Inconsistent`] if a known target's line is not
    /// understood.
    pub fn status<'a>(&self, id: impl Into<Id<'a>>) -> Result<Vec<StatusLine>, Error> {
        let id = id.into();
        let tried = format!("read the status of device-mapper device {id}");
        let entries = self.targets_of(id, 0, Slot::Live, &tried)?;
        let lines = entries.into_iter().map(|entry| {
            let status = Status::parse(&entry.kind, &entry.text)?;
            Ok(StatusLine { start: entry.start, len: entry.len, status })
        });
        lines.collect::<Result<_, LineError>>().map_err(|error| misread(&tried, error))
    }

    /// The devices that a device stands on, each once.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such device.
    pub fn deps<'a>(&self, id: impl Into<Id<'a>>, slot: Slot) -> Result<Vec<DeviceNumber>, Error> {
        let id = id.into();
        let tried = format!("read what device-mapper device {id} stands on");
        let answer = self.ask(Request::TableDeps, &header(id, slot.flag()), &[], &tried)?;
        if answer.header.flags & slot.present_flag() == 0 {
            return Ok(Vec::new());
        }
        answer.decode(&tried, |_, data| wire::deps(data))
    }

    /// The targets that the kernel has loaded at present, with their versions.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the kernel refuses.
    pub fn targets(&self) -> Result<Vec<TargetVersion>, Error> {
        let tried = "list the device-mapper targets";
        let answer = self.ask(Request::ListVersions, &Header::default(), &[], tried)?;
        let entries = answer.decode(tried, |_, data| wire::versions(data))?;
        Ok(entries
            .into_iter()
            .map(|(name, [major, minor, patch])| TargetVersion {
                name,
                version: Version { major, minor, patch },
            })
            .collect())
    }

    /// Has a thin pool keep its metadata as they are now, for [`thin_meta`](crate::thin_meta) to read while the
    /// pool goes on. A pool can hold one such snapshot; it is released when the guard is dropped.
    ///
    /// # Errors
    ///
    /// [`Kind::Busy`] if the pool holds one already, [`Kind::NotFound`] if there is no such device.
    pub fn hold_metadata<'a>(&'a self, pool: &DmUuid) -> Result<HeldMetadata<'a>, Error> {
        let tried = format!("hold the metadata of thin pool {pool}");
        self.message(pool.into(), "reserve_metadata_snap", &tried)?;
        Ok(HeldMetadata { dm: self, pool: pool.clone(), held: true })
    }

    /// Releases a held metadata snapshot that an earlier process left behind; true if there was one.
    ///
    /// # Errors
    ///
    /// [`Kind::NotFound`] if there is no such device.
    pub fn release_metadata(&self, pool: &DmUuid) -> Result<bool, Error> {
        let tried = format!("release the held metadata of thin pool {pool}");
        let lines = self.status(pool)?;
        let held = lines.iter().any(|line| match &line.status {
            Status::ThinPool(ThinPoolStatus::Working(used)) => used.held_root.is_some(),
            _ => false,
        });
        if held {
            self.message(pool.into(), "release_metadata_snap", &tried)?;
        }
        Ok(held)
    }

    fn message(&self, id: Id<'_>, text: &str, tried: &str) -> Result<(), Error> {
        // `struct dm_target_msg`: the sector that tells the target, then the text with its zero.
        let mut payload = vec![0; 8];
        payload.extend(text.as_bytes());
        payload.push(0);
        self.ask(Request::TargetMessage, &header(id, 0), &payload, tried).map(drop)
    }

    fn targets_of(
        &self,
        id: Id<'_>,
        flags: u32,
        slot: Slot,
        tried: &str,
    ) -> Result<Vec<wire::TargetEntry>, Error> {
        let sent = header(id, flags | flag::NOFLUSH | slot.flag());
        let answer = self.ask(Request::TableStatus, &sent, &[], tried)?;
        if answer.header.flags & slot.present_flag() == 0 {
            return Ok(Vec::new());
        }
        answer.decode(tried, wire::targets)
    }

    /// Sends a request, again with more room while the kernel says that the answer does not fit.
    fn ask(&self, request: Request, sent: &Header, payload: &[u8], tried: &str) -> Result<Answer, Error> {
        let mut room = FIRST_ROOM;
        loop {
            let buffer = ioctl::call(&self.control, request, sent, payload, room)
                .map_err(|errno| refused(errno, tried))?;
            let bytes = buffer.bytes();
            let header = Header::read(&bytes).ok_or_else(|| Error::new(Kind::Inconsistent, tried))?;
            if header.flags & flag::BUFFER_FULL == 0 {
                return Ok(Answer { header, bytes });
            }
            room *= 4;
            if room > LAST_ROOM {
                return Err(Error::new(Kind::Io, tried).with_answer("the answer is above 64 MiB long"));
            }
        }
    }
}

/// A held metadata snapshot of a thin pool; see [`Dm::hold_metadata`].
#[derive(Debug)]
pub struct HeldMetadata<'a> {
    dm: &'a Dm,
    pool: DmUuid,
    held: bool,
}

impl HeldMetadata<'_> {
    /// Lets the pool forget the snapshot.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or the pool has gone.
    pub fn release(mut self) -> Result<(), Error> {
        self.held = false;
        self.dm.release_metadata(&self.pool).map(drop)
    }
}

impl Drop for HeldMetadata<'_> {
    fn drop(&mut self) {
        if self.held {
            // Nobody to tell here; what stays held is released by the next `release_metadata`.
            let _ = self.dm.release_metadata(&self.pool);
        }
    }
}

fn header(id: Id<'_>, flags: u32) -> Header {
    let empty = Header { flags, ..Header::default() };
    match id {
        Id::Name(name) => Header { name: name.as_bytes().to_vec(), ..empty },
        Id::Uuid(uuid) => Header { uuid: uuid.as_bytes().to_vec(), ..empty },
        Id::Number(number) => Header { dev: number.to_rdev(), ..empty },
    }
}

fn misread(tried: &str, error: LineError) -> Error {
    Error::new(Kind::Inconsistent, tried).with_answer(error.to_string()).with_source(error)
}

fn refused(errno: Errno, tried: &str) -> Error {
    let kind = match errno {
        Errno::NXIO => Kind::NotFound,
        Errno::BUSY => Kind::Busy,
        Errno::INVAL | Errno::NOTTY => Kind::Unsupported,
        _ => Kind::Io,
    };
    let answer = match errno {
        Errno::NXIO => "there is no such device".to_owned(),
        _ => errno.to_string(),
    };
    Error::new(kind, tried).with_answer(answer).with_source(std::io::Error::from(errno))
}
