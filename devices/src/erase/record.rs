//! Consent to destroy what is on a disk, and the record that it was done, so that it is never done twice.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::{Wiped, signatures};
use crate::discovery::{Discovery, Disk, IdentityKey};
use crate::gpt::DiskFile;
use crate::{Change, Error, Kind};

const STARTED: &str = "started";
const FINISHED: &str = "finished";

/// Somebody's word that everything on one disk may be destroyed, once. It names the disk by what outlasts its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent(IdentityKey);

impl Consent {
    /// Everything on this disk may be destroyed.
    #[must_use]
    pub fn to_destroy(disk: IdentityKey) -> Self {
        Self(disk)
    }
}

/// The records of a host, one file a disk.
#[derive(Clone, Debug)]
pub struct Records {
    directory: PathBuf,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Noted {
    /// These signatures were on the disk when its wipe began; it may not have ended.
    Started(Vec<String>),
    Finished,
}

impl Records {
    /// Keeps the records in this directory, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let directory = directory.into();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| Error::system(format!("make {}", directory.display()), error))?;
        Ok(Self { directory })
    }

    /// Whether the wipe of this disk was finished once.
    ///
    /// # Errors
    ///
    /// If the record cannot be read.
    pub fn is_wiped(&self, disk: &IdentityKey) -> Result<bool, Error> {
        Ok(self.read(disk)? == Some(Noted::Finished))
    }

    /// Wipes a disk as [`wipe`](super::wipe) does, once: a disk whose record says that it was wiped is never touched
    /// again, whatever is on it now. A wipe that was cut short is finished, unless something new is on the disk since.
    ///
    /// Whose key the consent names is looked up again once the disk is claimed, for its name, or its number, may be
    /// another disk's since the inventory was made.
    ///
    /// # Errors
    ///
    /// As [`wipe`](super::wipe); [`Kind::Unsupported`] for a disk that cannot be recognised again;
    /// [`Kind::InvalidArgument`] if the consent is for another disk; [`Kind::Foreign`] if something new is on it;
    /// [`Kind::Inconsistent`] if it became another disk meanwhile, or if another one bears the same key, so that
    /// nobody can say which of them was meant.
    pub fn wipe_once(
        &self,
        discovery: &Discovery,
        disk: &Disk,
        consent: &Consent,
    ) -> Result<Change<Vec<Wiped>>, Error> {
        let tried = format!("wipe {}", disk.path.display());
        let key = consented(disk, consent, &tried)?;
        if self.is_wiped(&key)? {
            return Ok(Change::Already(Vec::new()));
        }
        let mut claim = DiskFile::claim(&disk.path)?;
        same_and_unique(discovery, disk, &claim, consent, &tried)?;
        // Once more, now that nobody else can be wiping it: another process may have finished meanwhile.
        let noted = self.read(&key)?;
        if noted == Some(Noted::Finished) {
            return Ok(Change::Already(Vec::new()));
        }
        let found = signatures::present(&claim)?;
        let lines = found.iter().map(|wiped| line(&disk.path, wiped)).collect::<Vec<_>>();
        match noted {
            Some(Noted::Started(before)) => {
                if let Some(new) = lines.iter().find(|line| !before.contains(line)) {
                    return Err(Error::new(Kind::Foreign, tried)
                        .with_answer(format!("its wipe was cut short, and since then it has {new}"))
                        .with_advice("wipe it by hand if that is meant"));
                }
            }
            _ => self.write(&key, &format!("{STARTED}\n{}", lines.concat()))?,
        }
        signatures::wipe(&mut claim)?;
        self.write(&key, &format!("{FINISHED}\n"))?;
        Ok(Change::Made(found))
    }

    fn path(&self, disk: &IdentityKey) -> PathBuf {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let name = disk.as_str().bytes().map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02x}"),
        });
        self.directory.join(name.collect::<String>())
    }

    fn read(&self, disk: &IdentityKey) -> Result<Option<Noted>, Error> {
        let path = self.path(disk);
        let tried = || format!("read the record {}", path.display());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::system(tried(), error)),
        };
        let mut lines = text.split_inclusive('\n');
        match lines.next().map(str::trim_end) {
            Some(STARTED) => Ok(Some(Noted::Started(lines.map(str::to_owned).collect()))),
            Some(FINISHED) => Ok(Some(Noted::Finished)),
            // Never taken for none: that would wipe the disk.
            _ => Err(Error::new(Kind::Inconsistent, tried())
                .with_answer("it says neither that the wipe started nor that it was finished")
                .with_advice("look what happened to the disk, then remove or mend the record")),
        }
    }

    /// Replaces a record as a whole, and returns when it is on the disk.
    fn write(&self, disk: &IdentityKey, text: &str) -> Result<(), Error> {
        let path = self.path(disk);
        // A name of this disk alone, since other disks may be wiped at the same time. Names of records have no dot.
        let new = path.with_extension("new");
        let replace = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        replace().map_err(|error| Error::system(format!("write the record {}", path.display()), error))
    }
}

/// The key of a disk, if the consent is for it.
fn consented(disk: &Disk, consent: &Consent, tried: &str) -> Result<IdentityKey, Error> {
    let Some(key) = disk.key() else {
        return Err(Error::new(Kind::Unsupported, tried)
            .with_answer("it has no serial number or world-wide name by which it could be known again")
            .with_advice("wipe it by hand"));
    };
    if consent.0 != key {
        return Err(Error::new(Kind::InvalidArgument, tried)
            .with_answer(format!("it is {key}, and the consent is for {}", consent.0.as_str())));
    }
    Ok(key)
}

/// Fails unless what is claimed is the disk that was looked at, and the only one with its key. While it is claimed it
/// keeps its number.
fn same_and_unique(
    discovery: &Discovery,
    disk: &Disk,
    claim: &DiskFile,
    consent: &Consent,
    tried: &str,
) -> Result<(), Error> {
    let inventory = discovery.inventory()?;
    let now = claim.number().and_then(|number| inventory.by_number(number));
    let sequence = claim.sequence()?;
    let is_that = |now: &&Disk| now.is_same_device(disk) && (sequence.is_none() || now.sequence == sequence);
    let Some(now) = now.filter(is_that) else {
        return Err(Error::new(Kind::Inconsistent, tried)
            .with_answer(format!("{} went away, or became another disk", disk.name))
            .with_advice("look at the disks again, and ask again for the right one"));
    };
    consented(now, consent, tried)?;
    inventory.refuse_namesakes(now, tried)
}

/// A signature as a record has it: the disk's own name is not in it, since that does not last.
fn line(disk: &Path, wiped: &Wiped) -> String {
    let disk = disk.as_os_str().to_string_lossy();
    let device = wiped.device.as_os_str().to_string_lossy();
    let part = device.strip_prefix(disk.as_ref()).unwrap_or(&device);
    let at = wiped.signature.offset.map_or_else(String::new, |at| format!(" at byte {}", at.get()));
    let part = if part.is_empty() { String::new() } else { format!(" in partition {part}") };
    // A filesystem that was made again in the same place is another one.
    let uuid = wiped.signature.uuid.as_deref().map_or_else(String::new, |uuid| format!(" with uuid {uuid}"));
    format!("{}{at}{part}{uuid}\n", wiped.signature.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_understood_is_never_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::in_directory(dir.path().join("records")).unwrap();
        let key = IdentityKey::of_text("serial:QEMU/x:1");
        assert_eq!(records.read(&key).unwrap(), None);
        records.write(&key, "started\next4 at byte 1080\n").unwrap();
        assert_eq!(records.read(&key).unwrap(), Some(Noted::Started(vec!["ext4 at byte 1080\n".to_owned()])));
        assert!(!records.is_wiped(&key).unwrap());
        records.write(&key, "finished\n").unwrap();
        assert!(records.is_wiped(&key).unwrap());
        assert!(!records.is_wiped(&IdentityKey::of_text("serial:QEMU%2fx:1")).unwrap());
        for bad in ["", "start", "wiped\n"] {
            records.write(&key, bad).unwrap();
            assert_eq!(records.is_wiped(&key).unwrap_err().kind(), Kind::Inconsistent, "{bad:?}");
        }
    }

    #[test]
    fn a_filesystem_made_again_in_the_same_place_is_not_the_one_of_the_record() {
        let of = |uuid: &str| Wiped {
            device: "/dev/sdb1".into(),
            signature: crate::probe::Signature {
                kind: "ext4".to_owned(),
                usage: crate::probe::Usage::Filesystem,
                label: None,
                uuid: Some(uuid.to_owned()),
                offset: Some(crate::Bytes::new(1080)),
            },
        };
        let line_of = |uuid| line(Path::new("/dev/sdb"), &of(uuid));
        assert_eq!(line_of("a"), "ext4 at byte 1080 in partition 1 with uuid a\n");
        assert_ne!(line_of("a"), line_of("b"));
    }
}
