//! Making filesystems.

use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::claim::{Blank, Claim, Found, detect};
use super::tool::Tool;
use super::{FsType, MakeOptions};
use crate::held::Held;
use crate::{Change, Effect, Error, Kind};

/// The features of an ext4 made here, whatever the host's mke2fs.conf says: all of them are in every kernel since
/// 4.4 and in e2fsprogs since 1.43. Newer ones (`orphan_file`) would keep older kernels out. `metadata_csum_seed`
/// lets a clone take a new uuid without all its checksums being written again.
const EXT4_FEATURES: &str = "none,has_journal,ext_attr,resize_inode,dir_index,sparse_super,large_file,huge_file,\
                             filetype,extent,64bit,flex_bg,metadata_csum,metadata_csum_seed,extra_isize,dir_nlink";

/// What filesystem to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    uuid: Uuid,
    label: Option<String>,
    options: MakeOptions,
    patience: Duration,
}

impl Format {
    /// A filesystem with this library's defaults: mountable by kernel 5.14 and newer, no blocks reserved for root,
    /// blocks of 4 KiB on ext4, no discard (a volume is discarded or wiped before it is handed out).
    ///
    /// The uuid is how an unfinished attempt is known again, so derive it from the volume, or record it.
    #[must_use]
    pub const fn new(fs: FsType, uuid: Uuid) -> Self {
        let patience = Duration::from_secs(600);
        Self { uuid, label: None, options: MakeOptions::none(fs), patience }
    }

    /// With options of the user's; they win over the defaults, and bring their filesystem's type.
    #[must_use]
    pub fn with_options(mut self, options: MakeOptions) -> Self {
        self.options = options;
        self
    }

    /// With a label: at most 12 bytes, which is as much as XFS holds, of letters, digits, `_`, `.` and `-`.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for another label.
    pub fn with_label(mut self, label: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if label.is_empty() || label.len() > 12 || label.starts_with('-') || !label.chars().all(plain) {
            let shown: String = label.chars().take(40).collect();
            return Err(Error::new(Kind::InvalidArgument, format!("take {shown:?} as a filesystem label"))
                .with_answer("a label has 1 to 12 letters, digits, _, . or -"));
        }
        self.label = Some(label.to_owned());
        Ok(self)
    }

    /// With another time limit than ten minutes.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The type.
    #[must_use]
    pub const fn fs_type(&self) -> FsType {
        self.options.fs_type()
    }

    /// The uuid.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    fn tool(&self, device: &Held) -> Tool {
        let tool = |program| Tool::new(self.fs_type(), program, self.patience);
        let uuid = self.uuid.to_string();
        let label = self.label.iter().flat_map(|label| ["-L", label.as_str()]);
        match self.fs_type() {
            FsType::Ext4 => tool("mkfs.ext4")
                .args(["-q", "-F", "-U", uuid.as_str()])
                .args(label)
                .args(self.ext4_options())
                .device(device),
            FsType::Xfs => tool("mkfs.xfs")
                .args(["-q", "-f", "-K"])
                .args(label)
                .args(self.xfs_options(&uuid, version(self.fs_type(), "mkfs.xfs")))
                .device(device),
            FsType::Btrfs => tool("mkfs.btrfs")
                .args(["-q", "-f", "-K", "-U", uuid.as_str()])
                .args(label)
                .args(self.btrfs_options(version(self.fs_type(), "mkfs.btrfs")))
                .device(device),
        }
    }

    fn ext4_options(&self) -> Vec<String> {
        let mut ours = vec![("-O", EXT4_FEATURES)];
        if !self.options.names("-E", "discard") {
            ours.push(("-E", "nodiscard"));
        }
        let defaults = [("-b", "4096"), ("-I", "256"), ("-m", "0"), ("-i", "16384")];
        let users_ratio = ["-T", "-N", "-i"].iter().any(|flag| self.options.has(flag));
        ours.extend(
            defaults.iter().filter(|(flag, _)| !(self.options.has(flag) || (*flag == "-i" && users_ratio))),
        );
        self.options.merged(&ours)
    }

    /// Of what newer xfsprogs switch on by themselves, whatever kernel 5.14 does not know is off: large extent
    /// counts (kernel 5.19), exchange-range and parent pointers (6.10).
    fn xfs_options(&self, uuid: &str, version: (u32, u32)) -> Vec<String> {
        let mut inode = Vec::new();
        if version >= (5, 19) && !self.options.names("-i", "nrext64") {
            inode.push("nrext64=0");
        }
        if version >= (6, 10) && !self.options.names("-i", "exchange") {
            inode.push("exchange=0");
        }
        let (inode, uuid) = (inode.join(","), format!("uuid={uuid}"));
        let mut ours = vec![("-m", uuid.as_str())];
        if !inode.is_empty() {
            ours.push(("-i", inode.as_str()));
        }
        if version >= (6, 10) && !self.options.names("-n", "parent") {
            ours.push(("-n", "parent=0"));
        }
        // Ours says it already, and a second one is an error.
        self.options.merged(&ours).into_iter().filter(|word| word != "-K").collect()
    }

    /// The block group tree, which newer btrfs-progs make by themselves, needs kernel 6.1.
    fn btrfs_options(&self, version: (u32, u32)) -> Vec<String> {
        let asked = self.options.names("-O", "block-group-tree");
        let ours: &[_] = if version >= (6, 14) && !asked { &[("-O", "^block-group-tree")] } else { &[] };
        self.options.merged(ours)
    }
}

/// The version that a program tells, (0, 0) when it tells none that can be read.
fn version(fs: FsType, program: &'static str) -> (u32, u32) {
    let tool = Tool::new(fs, program, Duration::from_secs(10)).arg("-V");
    let text = tool.run("ask for a version").map(|ended| ended.output + &ended.errors).unwrap_or_default();
    parse_version(&text).unwrap_or_default()
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let (major, rest) = word.trim_start_matches('v').split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

impl Blank {
    /// Makes a filesystem. It is looked for afterwards, by its type and uuid, on the very device that was claimed.
    ///
    /// The programs claim the device themselves, so the claim is handed over: it ends right before the program
    /// begins. Whatever took the device in between makes the program fail, for it opens exclusively too. The program is
    /// given no name of the device but the open device itself, so that it cannot come upon another one.
    ///
    /// # Errors
    ///
    /// [`Kind::NoSpace`] for a device below [`FsType::minimum_size`]; [`Kind::NotFound`] when the program is not
    /// installed; [`Kind::TimedOut`] when it was killed at the time limit. With [`Effect::Unknown`] a part of a
    /// filesystem may be there: leave the record at [`State::Formatting`] and try again.
    pub fn make(self, format: &Format) -> Result<Found, Error> {
        let claim = self.into_claim();
        let fs = format.fs_type();
        let size = claim.size;
        let tried = format!("make {fs} on {}", claim.path().display());
        if size < fs.minimum_size() {
            return Err(Error::new(Kind::NoSpace, tried)
                .with_answer(format!("it has {size}, and {fs} needs {}", fs.minimum_size())));
        }
        let held = claim.release();
        let tool = format.tool(&held);
        let unknown = |error: Error| error.with_effect(Effect::Unknown);
        tool.succeed(&tried)
            .map_err(|error| if error.kind() == Kind::NotFound { error } else { unknown(error) })?;
        let claim = Claim::of(held).map_err(unknown)?;
        let found = claim.detect().map_err(unknown)?;
        match found {
            Some(found) if found.fs == fs && found.uuid == format.uuid => Ok(found),
            other => {
                let answer = match other {
                    Some(found) => format!("{} {} is there afterwards", found.fs, found.uuid),
                    None => "no filesystem is there afterwards".to_owned(),
                };
                Err(unknown(Error::new(Kind::Inconsistent, tried)).with_answer(answer))
            }
        }
    }
}

/// What a volume's owner has recorded of its filesystem, on the disk and beside the filesystem itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The volume was wiped, and nothing was begun since.
    New,
    /// Making a filesystem was begun; whether it ended is not known.
    Formatting,
    /// It was made. From here on nothing is ever made on this volume again.
    Made(FsType),
}

/// Where an owner keeps the [`State`] of one volume. Each change must be on the disk before the call returns.
pub trait Record {
    /// What is recorded now.
    ///
    /// # Errors
    ///
    /// When it cannot be read; then nothing is made.
    fn state(&self) -> Result<State, Error>;

    /// Records another state.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn set_state(&mut self, state: State) -> Result<(), Error>;
}

/// Makes a volume's filesystem if its record says that it has none, once, however often this is called and wherever
/// it is killed.
///
/// * `New`: nothing at all may be on the device. The record becomes `Formatting` before the first byte is written,
///   and `Made` after the filesystem was found.
/// * `Formatting`: only a filesystem of the same type and uuid may be there, which is then made anew.
/// * `Made`: it must be there and of the type asked for. Where it is not, its superblock is damaged: that is an
///   error for a person, and never a reason to make another one.
///
/// # Errors
///
/// As for [`Blank::claim`] and [`Blank::make`]; [`Kind::AlreadyExists`] when the volume has a filesystem of another
/// type; [`Kind::Inconsistent`] when the one that was made is not found.
pub fn ensure(device: &Path, format: &Format, record: &mut impl Record) -> Result<Change<Found>, Error> {
    let fs = format.fs_type();
    let blank = match record.state()? {
        State::Made(made) => return already_made(device, fs, made).map(Change::Already),
        State::New => Blank::claim(device)?,
        State::Formatting => Blank::claim_unfinished(device, fs, format.uuid)?,
    };
    record.set_state(State::Formatting)?;
    let found = blank.make(format)?;
    record.set_state(State::Made(fs)).map_err(|error| error.with_effect(Effect::Done))?;
    Ok(Change::Made(found))
}

fn already_made(device: &Path, asked: FsType, made: FsType) -> Result<Found, Error> {
    let tried = format!("find {asked} on {}", device.display());
    if asked != made {
        return Err(
            Error::new(Kind::AlreadyExists, tried).with_answer(format!("the volume was made as {made}"))
        );
    }
    match detect(device)? {
        Some(found) if found.fs == made => Ok(found),
        other => {
            let there = other.map_or("nothing that is known".to_owned(), |found| found.fs.to_string());
            let advice = match made {
                FsType::Ext4 => {
                    "its superblock is damaged; a copy is at block 32768: e2fsck -b 32768 -B 4096"
                }
                FsType::Xfs => "its superblock is damaged; look with: xfs_repair -n",
                FsType::Btrfs => "its superblock is damaged; a copy helps: btrfs rescue super-recover",
            };
            Err(Error::new(Kind::Inconsistent, tried)
                .with_answer(format!("it was made once, and now {there} is there"))
                .with_advice(advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(fs: FsType, texts: &[&str]) -> Format {
        Format::new(fs, Uuid::nil()).with_options(MakeOptions::parse(fs, texts).unwrap())
    }

    #[test]
    fn a_users_options_win_over_ours() {
        let line = options(FsType::Ext4, &["-m 1", "-O ^has_journal,quota", "-E stride=16", "-T largefile"])
            .ext4_options();
        let line = line.join(" ");
        assert!(
            line.contains("-O none,has_journal,") && line.contains("dir_nlink,^has_journal,quota -E"),
            "{line}"
        );
        assert!(line.contains("-E nodiscard,stride=16 -b 4096 -I 256 -m 1 -T largefile"), "{line}");
        assert!(!line.contains("-i 16384") && !line.contains("-m 0"), "{line}");
    }

    #[test]
    fn what_only_newer_kernels_mount_is_off_where_the_program_knows_it() {
        let xfs = |texts: &[&str], version| options(FsType::Xfs, texts).xfs_options("x", version).join(" ");
        assert_eq!(xfs(&[], (5, 10)), "-m uuid=x");
        assert_eq!(xfs(&["-K"], (6, 1)), "-m uuid=x -i nrext64=0");
        assert_eq!(
            xfs(&["-m crc=1", "-i size=1024"], (6, 12)),
            "-m uuid=x,crc=1 -i nrext64=0,exchange=0,size=1024 -n parent=0"
        );
        assert_eq!(xfs(&["-i nrext64=1"], (6, 1)), "-m uuid=x -i nrext64=1");
        let btrfs = |texts: &[&str], version| options(FsType::Btrfs, texts).btrfs_options(version).join(" ");
        assert_eq!(btrfs(&["-O quota"], (6, 2)), "-O quota");
        assert_eq!(btrfs(&["-O quota"], (6, 19)), "-O ^block-group-tree,quota");
    }

    #[test]
    fn versions_are_read_as_the_programs_write_them() {
        assert_eq!(parse_version("mkfs.xfs version 6.1.0\n"), Some((6, 1)));
        assert_eq!(parse_version("mkfs.btrfs, part of btrfs-progs v6.2\n"), Some((6, 2)));
        assert_eq!(parse_version("mke2fs 1.47.0 (5-Feb-2023)\n"), Some((1, 47)));
        assert_eq!(parse_version("usage: mkfs"), None);
    }

    #[test]
    fn labels_are_plain_and_short() {
        let format = Format::new(FsType::Xfs, Uuid::nil());
        assert!(format.clone().with_label("db-1").is_ok());
        for bad in ["", "thirteen-byte", "-x", "a b", "a/b", "ü"] {
            assert!(format.clone().with_label(bad).is_err(), "{bad}");
        }
    }
}
