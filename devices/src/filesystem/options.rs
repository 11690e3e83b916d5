//! What a user may tell the programs that make filesystems.

use super::FsType;
use crate::{Error, Kind};

/// The longest list of options taken.
const LONGEST: usize = 4096;

/// Options for `mkfs`, checked: only what shapes the filesystem itself, never another device or file.
///
/// ```
/// use devices::filesystem::{FsType, MakeOptions};
///
/// let options = MakeOptions::parse(FsType::Ext4, ["-E stride=16,stripe_width=64", "-m", "1"])?;
/// assert_eq!(options.to_string(), "-E stride=16,stripe_width=64 -m 1");
/// assert!(MakeOptions::parse(FsType::Ext4, ["-d /etc"]).is_err());
/// # Ok::<(), devices::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeOptions {
    fs: FsType,
    given: Vec<(String, Option<String>)>,
}

/// What may follow a flag.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// Nothing.
    None,
    /// One plain word.
    Word,
    /// Names with or without values and with commas between them, of these names; a name may have a `^` before it.
    Keys(&'static [&'static str]),
    /// The same with any names: features, which the program itself knows better.
    Features,
}

const EXT4: &[(&str, Value)] = &[
    ("-b", Value::Word),
    ("-C", Value::Word),
    (
        "-E",
        Value::Keys(&[
            "assume_storage_prezeroed",
            "discard",
            "encoding",
            "encoding_flags",
            "lazy_itable_init",
            "lazy_journal_init",
            "mmp_update_interval",
            "nodiscard",
            "num_backup_sb",
            "packed_meta_blocks",
            "quotatype",
            "resize",
            "root_owner",
            "stride",
            "stripe-width",
            "stripe_width",
        ]),
    ),
    ("-g", Value::Word),
    ("-G", Value::Word),
    ("-i", Value::Word),
    ("-I", Value::Word),
    ("-J", Value::Keys(&["fast_commit_size", "size"])),
    ("-m", Value::Word),
    ("-N", Value::Word),
    ("-O", Value::Features),
    ("-T", Value::Word),
];

const XFS: &[(&str, Value)] = &[
    ("-b", Value::Keys(&["size"])),
    (
        "-d",
        Value::Keys(&[
            "agcount",
            "agsize",
            "concurrency",
            "cowextsize",
            "extszinherit",
            "noalign",
            "su",
            "sunit",
            "sw",
            "swidth",
        ]),
    ),
    (
        "-i",
        Value::Keys(&[
            "align",
            "attr",
            "exchange",
            "maxpct",
            "nrext64",
            "perblock",
            "projid32bit",
            "size",
            "sparse",
        ]),
    ),
    ("-K", Value::None),
    ("-l", Value::Keys(&["concurrency", "lazy-count", "size", "su", "sunit", "version"])),
    (
        "-m",
        Value::Keys(&["autofsck", "bigtime", "crc", "finobt", "inobtcount", "metadir", "reflink", "rmapbt"]),
    ),
    ("-n", Value::Keys(&["ftype", "parent", "size", "version"])),
    ("-s", Value::Keys(&["size"])),
];

const BTRFS: &[(&str, Value)] = &[
    ("-d", Value::Word),
    ("-K", Value::None),
    ("-m", Value::Word),
    ("-M", Value::None),
    ("-n", Value::Word),
    ("-O", Value::Features),
    ("-R", Value::Features),
    ("-s", Value::Word),
    ("--csum", Value::Word),
];

impl MakeOptions {
    /// None: the defaults of this library.
    #[must_use]
    pub const fn none(fs: FsType) -> Self {
        Self { fs, given: Vec::new() }
    }

    /// Reads options: each text is a flag, a flag with its value after a space, or a value after its flag.
    ///
    /// # Errors
    ///
    /// [`Kind::InvalidArgument`] for flags or names that are not known here. Among them are all that name another
    /// device or a file (`-d DIRECTORY` of ext4, `-l logdev=` of xfs), and uuid and label, which have their own place.
    pub fn parse<T: AsRef<str>>(fs: FsType, texts: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        let refused = |what: &str, why: String| {
            let shown: String = what.chars().take(80).collect();
            Error::new(Kind::InvalidArgument, format!("take {shown:?} as an option for making {fs}"))
                .with_answer(why)
        };
        let mut words = Vec::new();
        let mut length = 0;
        for text in texts {
            length += text.as_ref().len();
            if length > LONGEST {
                return Err(refused("the options", format!("they are longer than {LONGEST} bytes together")));
            }
            words.extend(text.as_ref().split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
        }
        let table = match fs {
            FsType::Ext4 => EXT4,
            FsType::Xfs => XFS,
            FsType::Btrfs => BTRFS,
        };
        let mut options = Self::none(fs);
        let mut words = words.into_iter();
        while let Some(flag) = words.next() {
            let Some((_, value)) = table.iter().find(|(known, _)| *known == flag) else {
                let known: Vec<_> = table.iter().map(|(known, _)| *known).collect();
                return Err(refused(&flag, format!("these flags are taken: {}", known.join(" "))));
            };
            let word = match value {
                Value::None => None,
                Value::Word | Value::Keys(_) | Value::Features => {
                    let word =
                        words.next().ok_or_else(|| refused(&flag, "its value is missing".to_owned()))?;
                    check(*value, &word).map_err(|why| refused(&format!("{flag} {word}"), why))?;
                    Some(word)
                }
            };
            options.given.push((flag, word));
        }
        Ok(options)
    }

    /// The filesystem that they are for.
    #[must_use]
    pub const fn fs_type(&self) -> FsType {
        self.fs
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|(given, _)| given == flag)
    }

    /// Whether a name is among the values of a flag.
    pub(super) fn names(&self, flag: &str, name: &str) -> bool {
        let values =
            self.given.iter().filter(|(given, _)| given == flag).filter_map(|(_, value)| value.as_deref());
        values.flat_map(|value| value.split(',')).any(|item| item.split('=').next() == Some(name))
    }

    /// The command line: these options, with ours put before the values of the same flag.
    pub(super) fn merged(&self, ours: &[(&str, &str)]) -> Vec<String> {
        let mut line = Vec::new();
        for (flag, value) in ours {
            line.push((*flag).to_owned());
            let of_flag = self
                .given
                .iter()
                .filter(|(given, _)| given == flag)
                .filter_map(|(_, value)| value.as_deref());
            line.push(std::iter::once(*value).chain(of_flag).collect::<Vec<_>>().join(","));
        }
        for (flag, value) in &self.given {
            if ours.iter().all(|(of_ours, _)| of_ours != flag) {
                line.push(flag.clone());
                line.extend(value.clone());
            }
        }
        line
    }
}

impl std::fmt::Display for MakeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<&str> = self
            .given
            .iter()
            .flat_map(|(flag, value)| std::iter::once(flag.as_str()).chain(value.as_deref()))
            .collect();
        f.write_str(&words.join(" "))
    }
}

fn check(value: Value, word: &str) -> Result<(), String> {
    let plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    if word.starts_with('-') {
        return Err("a value does not begin with -".to_owned());
    }
    match value {
        Value::None => Ok(()),
        Value::Word if plain(word) => Ok(()),
        Value::Word => Err("its value is no plain word".to_owned()),
        Value::Features => {
            let good = word.split(',').all(|feature| plain(feature.strip_prefix('^').unwrap_or(feature)));
            if good { Ok(()) } else { Err("a feature is no plain word".to_owned()) }
        }
        Value::Keys(known) => word.split(',').try_for_each(|item| {
            let (name, value) = item.split_once('=').unwrap_or((item, "1"));
            if !known.contains(&name) {
                return Err(format!("these are taken: {}", known.join(" ")));
            }
            if plain(value) { Ok(()) } else { Err(format!("the value of {name} is no plain word")) }
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(fs: FsType, texts: &[&str]) -> MakeOptions {
        MakeOptions::parse(fs, texts).unwrap()
    }

    #[test]
    fn flags_and_values_come_in_one_text_or_in_two() {
        let options = parsed(FsType::Xfs, &["-d su=64k,sw=4", "-l", "size=64m", "-K"]);
        assert_eq!(options.to_string(), "-d su=64k,sw=4 -l size=64m -K");
        assert!(options.names("-d", "sw") && !options.names("-d", "agcount") && options.has("-K"));
        assert_eq!(
            options.merged(&[("-l", "version=2")]).join(" "),
            "-l version=2,size=64m -d su=64k,sw=4 -K"
        );
    }

    #[test]
    fn what_reaches_beyond_the_filesystem_is_refused() {
        for (fs, bad) in [
            (FsType::Ext4, "-d /etc"),
            (FsType::Ext4, "-J device=/dev/sda"),
            (FsType::Ext4, "-E offset=4096"),
            (FsType::Ext4, "-F -F"),
            (FsType::Ext4, "-U random"),
            (FsType::Ext4, "-b"),
            (FsType::Ext4, "-b -n"),
            (FsType::Ext4, "/dev/sda"),
            (FsType::Ext4, "-m 1;reboot"),
            (FsType::Ext4, "-O $(id)"),
            (FsType::Ext4, "-b\n4096"),
            (FsType::Xfs, "-l logdev=/dev/sda"),
            (FsType::Xfs, "-d name=/dev/sda"),
            (FsType::Xfs, "-d file=1"),
            (FsType::Xfs, "-r rtdev=/dev/sda"),
            (FsType::Xfs, "-p /etc/passwd"),
            (FsType::Xfs, "-c options=/etc/passwd"),
            (FsType::Xfs, "-m uuid=1"),
            (FsType::Xfs, "-d su=/dev/sda"),
            (FsType::Btrfs, "-r /etc"),
            (FsType::Btrfs, "--rootdir /etc"),
            (FsType::Btrfs, "-d /dev/sda"),
            (FsType::Btrfs, "single"),
        ] {
            let error = MakeOptions::parse(fs, [bad]).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{fs} {bad}");
        }
        assert!(MakeOptions::parse(FsType::Ext4, ["-K".repeat(3000)]).unwrap_err().to_string().len() < 200);
    }

    proptest! {
        #[test]
        fn whatever_is_taken_holds_no_path_and_no_white_space(text in "-[a-zA-Z] [\\PC]{0,20}") {
            for fs in FsType::ALL {
                if let Ok(options) = MakeOptions::parse(fs, [&text]) {
                    let line = options.merged(&[]);
                    prop_assert!(line.iter().all(|word| !word.contains(['/', '\n', '\t', ' ', ';', '$'])));
                }
            }
        }
    }
}
