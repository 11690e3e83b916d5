//! Mount options as people write them, made into what the kernel takes one by one.

use rustix::mount::MountAttrFlags;

use super::Access;
use crate::{Error, Kind};

/// The longest list of options, as much as the CSI specification lets a request hold.
const LONGEST: usize = 4096;

/// What an option can only mean in `/etc/fstab` or to the program `mount`, or what would make another operation of
/// a mount.
const NOT_HERE: [&str; 30] = [
    "auto",
    "bind",
    "comment",
    "group",
    "loop",
    "make-private",
    "make-shared",
    "make-slave",
    "make-unbindable",
    "mand",
    "move",
    "noauto",
    "nofail",
    "nomand",
    "nouser",
    "nousers",
    "offset",
    "owner",
    "private",
    "rbind",
    "remount",
    "rprivate",
    "rshared",
    "rslave",
    "shared",
    "sizelimit",
    "slave",
    "unbindable",
    "user",
    "users",
];

/// What would have the filesystem use another device than the one that is mounted.
const OTHER_DEVICES: [&str; 10] = [
    "device",
    "journal_dev",
    "journal_path",
    "logdev",
    "lowerdir",
    "rtdev",
    "sb",
    "source",
    "upperdir",
    "workdir",
];

/// The options of one mount: what the kernel keeps for the mount itself, and what it hands to the filesystem.
///
/// ```
/// use devices::mount::{Access, MountOptions};
///
/// let options = MountOptions::parse(["noatime,discard", "ro"])?;
/// assert_eq!(options.access(), Access::ReadOnly);
/// assert_eq!(options.to_string(), "ro,noatime,discard");
/// assert!(MountOptions::parse(["remount"]).is_err());
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    pub(super) attributes: MountAttrFlags,
    /// Which filesystem options were asked for, in order; each name once.
    pub(super) filesystem: Vec<FilesystemOption>,
}

/// An option that the filesystem is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilesystemOption {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MountOptions {
    /// The kernel's defaults: reading and writing, `relatime`.
    #[must_use]
    pub const fn new() -> Self {
        Self { attributes: MountAttrFlags::empty(), filesystem: Vec::new() }
    }

    /// Reads options: each text is one option or several with commas between them. A value in double quotes may
    /// hold commas (`context="system_u:object_r:x:s0:c1,c2"`). Later options win over earlier ones.
    ///
    /// What the filesystem does not know is refused by the kernel when it is mounted; what would do something else
    /// than to mount this filesystem (`remount`, `bind`, `logdev=…`) is refused here.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for what is no option, or none that is taken here.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        let mut options = Self::new();
        let mut length = 0;
        for text in texts {
            length += text.as_ref().len();
            if length > LONGEST {
                return Err(refused("the options", format!("they are longer than {LONGEST} bytes together")));
            }
            for option in split(text.as_ref())? {
                options.add(option)?;
            }
        }
        Ok(options)
    }

    /// The same for reading alone.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        self
    }

    /// Fails where an option is one that only a filesystem takes when it is mounted, not one more mount of it.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] with the first such option.
    pub fn require_of_mount_alone(&self) -> Result<(), Error> {
        match self.filesystem.first() {
            None => Ok(()),
            Some(option) => Err(refused(
                &option.name,
                "it is for a whole filesystem, and a directory lies in one that is mounted",
            )),
        }
    }

    /// Whether such a mount refuses writes.
    #[must_use]
    pub fn access(&self) -> Access {
        if self.attributes.contains(MountAttrFlags::MOUNT_ATTR_RDONLY) {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        }
    }

    fn add(&mut self, option: &str) -> Result<(), Error> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(value))),
            None => (option, None),
        };
        let named = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !named {
            return Err(refused(
                option,
                "an option begins with a letter and holds letters, digits, _, - and .",
            ));
        }
        if option.contains(|c: char| c.is_control()) {
            return Err(refused(option, "it holds control characters"));
        }
        if NOT_HERE.contains(&name) || name.starts_with("x-") || name.starts_with("X-") {
            return Err(refused(
                option,
                "it does not tell how to mount a filesystem, but asks for something else",
            ));
        }
        if OTHER_DEVICES.contains(&name) {
            return Err(refused(option, "it would bring in another device or file than the volume's own"));
        }
        if let Some(known) = attribute(name) {
            if value.is_some() {
                return Err(refused(option, format!("{name} takes no value")));
            }
            self.attributes = (self.attributes & !known.clears) | known.sets;
        } else if name != "defaults" {
            self.set(name, value);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: Option<&str>) {
        self.filesystem.retain(|option| option.name != name);
        self.filesystem.push(FilesystemOption { name: name.to_owned(), value: value.map(str::to_owned) });
    }
}

/// As `mount -o` takes them.
impl std::fmt::Display for MountOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = if self.access() == Access::ReadOnly { "ro" } else { "rw" };
        f.write_str(access)?;
        for (name, known) in ATTRIBUTES {
            let sets = known.sets;
            if *name != "ro" && !sets.is_empty() && self.attributes.contains(sets) {
                write!(f, ",{name}")?;
            }
        }
        for FilesystemOption { name, value } in &self.filesystem {
            match value {
                Some(value) if value.contains(',') => write!(f, ",{name}=\"{value}\"")?,
                Some(value) => write!(f, ",{name}={value}")?,
                None => write!(f, ",{name}")?,
            }
        }
        Ok(())
    }
}

/// What an option does to the attributes of a mount.
#[derive(Clone, Copy)]
struct Attribute {
    sets: MountAttrFlags,
    clears: MountAttrFlags,
}

const fn sets(flags: MountAttrFlags) -> Attribute {
    Attribute { sets: flags, clears: MountAttrFlags::empty() }
}

const fn clears(flags: MountAttrFlags) -> Attribute {
    Attribute { sets: MountAttrFlags::empty(), clears: flags }
}

/// `relatime` is zero; the three ways to keep access times exclude each other (mount_setattr(2)).
const fn access_time(flags: MountAttrFlags) -> Attribute {
    Attribute { sets: flags, clears: MountAttrFlags::MOUNT_ATTR__ATIME }
}

const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("ro", sets(MountAttrFlags::MOUNT_ATTR_RDONLY)),
    ("rw", clears(MountAttrFlags::MOUNT_ATTR_RDONLY)),
    ("nosuid", sets(MountAttrFlags::MOUNT_ATTR_NOSUID)),
    ("suid", clears(MountAttrFlags::MOUNT_ATTR_NOSUID)),
    ("nodev", sets(MountAttrFlags::MOUNT_ATTR_NODEV)),
    ("dev", clears(MountAttrFlags::MOUNT_ATTR_NODEV)),
    ("noexec", sets(MountAttrFlags::MOUNT_ATTR_NOEXEC)),
    ("exec", clears(MountAttrFlags::MOUNT_ATTR_NOEXEC)),
    ("nosymfollow", sets(MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW)),
    ("symfollow", clears(MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW)),
    ("nodiratime", sets(MountAttrFlags::MOUNT_ATTR_NODIRATIME)),
    ("diratime", clears(MountAttrFlags::MOUNT_ATTR_NODIRATIME)),
    ("noatime", access_time(MountAttrFlags::MOUNT_ATTR_NOATIME)),
    ("strictatime", access_time(MountAttrFlags::MOUNT_ATTR_STRICTATIME)),
    ("relatime", access_time(MountAttrFlags::MOUNT_ATTR_RELATIME)),
    ("atime", access_time(MountAttrFlags::MOUNT_ATTR_RELATIME)),
    ("norelatime", access_time(MountAttrFlags::MOUNT_ATTR_RELATIME)),
    ("nostrictatime", access_time(MountAttrFlags::MOUNT_ATTR_RELATIME)),
];

fn attribute(name: &str) -> Option<Attribute> {
    ATTRIBUTES.iter().find(|(known, _)| *known == name).map(|(_, attribute)| *attribute)
}

/// Splits at commas outside of double quotes; empty pieces are passed over, as `mount` does.
fn split(text: &str) -> Result<Vec<&str>, Error> {
    let mut quoted = false;
    let pieces = text.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    let pieces = pieces.map(|piece| piece.trim_matches(' ')).filter(|piece| !piece.is_empty()).collect();
    if text.matches('"').count() % 2 == 1 {
        return Err(refused(text, "a quotation mark is not closed"));
    }
    Ok(pieces)
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

fn refused(option: &str, why: impl Into<String>) -> Error {
    let shown: String = option.chars().take(80).collect();
    Error::new(Kind::InvalidArgument, format!("take mount option {shown:?}")).with_answer(why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(texts: &[&str]) -> MountOptions {
        MountOptions::parse(texts).unwrap()
    }

    #[test]
    fn what_only_a_filesystem_takes_is_told_from_what_each_mount_takes() {
        assert!(parsed(&["ro,noatime,nosuid", "nodev"]).require_of_mount_alone().is_ok());
        let error = parsed(&["noatime", "discard"]).require_of_mount_alone().unwrap_err();
        assert!(error.to_string().contains("\"discard\""), "{error}");
    }

    #[test]
    fn later_options_win_and_defaults_say_nothing() {
        assert_eq!(parsed(&["ro,noatime", "rw", "strictatime"]).to_string(), "rw,strictatime");
        assert_eq!(parsed(&["noatime,atime,defaults"]), MountOptions::new());
        assert_eq!(parsed(&["data=ordered,discard,data=journal"]).to_string(), "rw,discard,data=journal");
        assert_eq!(parsed(&["nosuid, nodev,,noexec"]).to_string(), "rw,nosuid,nodev,noexec");
        assert_eq!(parsed(&[]).read_only().access(), Access::ReadOnly);
    }

    #[test]
    fn a_quoted_value_keeps_its_commas() {
        let options = parsed(&["context=\"system_u:object_r:data_t:s0:c1,c2\",noatime"]);
        assert_eq!(options.filesystem[0].value.as_deref(), Some("system_u:object_r:data_t:s0:c1,c2"));
        assert_eq!(options.to_string(), "rw,noatime,context=\"system_u:object_r:data_t:s0:c1,c2\"");
        assert!(MountOptions::parse(["context=\"a,b"]).is_err());
    }

    #[test]
    fn whatever_does_something_else_than_to_mount_is_refused() {
        for bad in [
            "remount,suid",
            "bind=/",
            "bind",
            "rbind",
            "move",
            "shared",
            "loop",
            "x-systemd.automount",
            "nofail",
            "logdev=/dev/sda",
            "device=/dev/sda",
            "journal_dev=0x801",
            "journal_path=/dev/sda",
            "sb=1",
            "lowerdir=/etc",
            "--bind",
            "-o",
            "$(id)",
            "a;reboot",
            "a b",
            "../etc",
            "noatime\n",
            "a\0b",
            "=x",
            "noatime=1",
            "data=a\nb",
        ] {
            let error = MountOptions::parse([bad]).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{bad:?}");
        }
        let long = "a".repeat(LONGEST + 1);
        assert!(MountOptions::parse([long.as_str()]).unwrap_err().to_string().len() < 200);
        assert!(MountOptions::parse(["noatime"; 600]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(texts in proptest::collection::vec("[a-z]{1,9}(=[a-z0-9:,\"/]{1,9})?", 0..6)) {
            if let Ok(options) = MountOptions::parse(&texts) {
                prop_assume!(!options.to_string().contains("\"\""));
                let again = MountOptions::parse([options.to_string()]);
                let inner_quotes = options.filesystem.iter().any(|o| o.value.as_ref().is_some_and(|v| v.contains('"')));
                if !inner_quotes {
                    prop_assert_eq!(again.unwrap(), options);
                }
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = MountOptions::parse([text]);
        }
    }
}
