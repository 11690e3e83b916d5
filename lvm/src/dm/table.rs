//! What a device is made of: its table, line by line.

use devices::{Bytes, DeviceNumber, Sectors};

use super::line::{LineError, Words};

/// A device's table; without lines when none is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The lines, in the order of their starts and without gaps.
    pub segments: Vec<TargetLine>,
}

/// One line of a table: which range of the device is served how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetLine {
    /// Where the range begins in the device.
    pub start: Sectors,
    /// How long it is.
    pub len: Sectors,
    /// What serves it.
    pub target: Target,
}

/// How a range is served. Devices are always given by number, as the kernel prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// One range of one device.
    Linear(Place),
    /// Several devices in turn.
    Striped {
        /// How much goes to one device before the next one's turn.
        chunk: Sectors,
        /// The devices.
        stripes: Vec<Place>,
    },
    /// A pool from which thin volumes take their blocks.
    ThinPool(ThinPoolTable),
    /// A thin volume.
    Thin {
        /// The pool's device.
        pool: DeviceNumber,
        /// The volume's id in the pool, 24 bits.
        id: u32,
        /// A read-only device that shows through where nothing is mapped.
        external_origin: Option<DeviceNumber>,
    },
    /// The origin of classic snapshots: writes are copied out first.
    SnapshotOrigin {
        /// The device with the data.
        device: DeviceNumber,
    },
    /// A classic snapshot.
    Snapshot(SnapshotTable),
    /// An origin into which a classic snapshot is being merged.
    SnapshotMerge(SnapshotTable),
    /// RAID by the md code.
    Raid {
        /// `raid1`, `raid5_ls`, ….
        level: String,
        /// The level's parameters as the kernel prints them.
        parameters: Vec<String>,
        /// The legs in order.
        legs: Vec<RaidLeg>,
    },
    /// The old mirror, which pvmove still uses.
    Mirror {
        /// `core` or `disk`.
        log: String,
        /// The log's arguments.
        log_parameters: Vec<String>,
        /// The mirrored devices.
        legs: Vec<Place>,
    },
    /// dm-cache.
    Cache(CacheTable),
    /// dm-writecache.
    Writecache {
        /// `s` for a cache on a block device, `p` for persistent memory.
        medium: String,
        /// The cached device.
        origin: DeviceNumber,
        /// The cache.
        cache: DeviceNumber,
        /// The cache's block.
        block: Bytes,
        /// Further options as the kernel prints them.
        options: Vec<String>,
    },
    /// dm-crypt. The key, which the kernel prints too, is not kept.
    Crypt {
        /// Cipher and mode.
        cipher: String,
        /// Where the cipher text lies.
        place: Place,
    },
    /// Every access fails.
    Error,
    /// Reads give zeroes, writes vanish.
    Zero,
    /// Anything else, in the kernel's words.
    Other {
        /// The target's name.
        kind: String,
        /// Its parameters.
        text: String,
    },
}

/// A device, and where in it the data begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device.
    pub device: DeviceNumber,
    /// Where the range begins in that device.
    pub start: Sectors,
}

/// A thin pool's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinPoolTable {
    /// The metadata volume's device.
    pub metadata: DeviceNumber,
    /// The data volume's device.
    pub data: DeviceNumber,
    /// The pool's chunk.
    pub block: Sectors,
    /// An event comes when fewer blocks than this are free; zero for no such event.
    pub low_water: u64,
    /// `skip_block_zeroing`, `error_if_no_space`, … as the kernel prints them.
    pub features: Vec<String>,
}

/// A classic snapshot's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTable {
    /// The origin's data.
    pub origin: DeviceNumber,
    /// The exception store.
    pub cow: DeviceNumber,
    /// `P` persistent, `PO` persistent with overflow reported as such, `N` transient.
    pub store: String,
    /// The unit of copying.
    pub chunk: Sectors,
}

/// One leg of a RAID; a device that is missing from the table is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidLeg {
    /// Superblock and bitmap.
    pub metadata: Option<DeviceNumber>,
    /// Data.
    pub data: Option<DeviceNumber>,
}

/// A dm-cache's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheTable {
    /// The cache's metadata.
    pub metadata: DeviceNumber,
    /// The fast device.
    pub cache: DeviceNumber,
    /// The slow device.
    pub origin: DeviceNumber,
    /// The unit of caching.
    pub block: Sectors,
    /// `writeback`, `metadata2`, … as the kernel prints them.
    pub features: Vec<String>,
    /// The policy's name.
    pub policy: String,
    /// The policy's settings, key and value in turn.
    pub policy_settings: Vec<String>,
}

impl Target {
    /// Reads the parameters `text` of a target named `kind`, as the kernel prints them.
    ///
    /// # Errors
    ///
    /// [`LineError`] if a known target's parameters do not have their form. Words after the known ones are ignored.
    pub fn parse(kind: &str, text: &str) -> Result<Self, LineError> {
        let words = &mut Words::new(text);
        let target = match kind {
            "linear" => place(words).map(Self::Linear),
            "striped" => striped(words),
            "thin-pool" => thin_pool(words).map(Self::ThinPool),
            "thin" => thin(words),
            "snapshot-origin" => words.device().map(|device| Self::SnapshotOrigin { device }),
            "snapshot" => snapshot(words).map(Self::Snapshot),
            "snapshot-merge" => snapshot(words).map(Self::SnapshotMerge),
            "raid" => raid(words),
            "mirror" => mirror(words),
            "cache" => cache(words).map(Self::Cache),
            "writecache" => writecache(words),
            "crypt" => crypt(words),
            "error" => Some(Self::Error),
            "zero" => Some(Self::Zero),
            _ => Some(Self::Other { kind: kind.to_owned(), text: text.to_owned() }),
        };
        // A crypt line holds the key, which belongs into no error text.
        let shown = if kind == "crypt" { "(not shown)" } else { text };
        target.ok_or_else(|| LineError::new("table", kind, shown))
    }
}

fn place(words: &mut Words<'_>) -> Option<Place> {
    Some(Place { device: words.device()?, start: words.sectors()? })
}

fn striped(words: &mut Words<'_>) -> Option<Target> {
    let count = words.number()?;
    let chunk = words.sectors()?;
    Some(Target::Striped { chunk, stripes: words.repeated(count, place)? })
}

fn thin_pool(words: &mut Words<'_>) -> Option<ThinPoolTable> {
    Some(ThinPoolTable {
        metadata: words.device()?,
        data: words.device()?,
        block: words.sectors()?,
        low_water: words.number()?,
        features: words.counted()?,
    })
}

fn thin(words: &mut Words<'_>) -> Option<Target> {
    let pool = words.device()?;
    let id = words.number()?;
    let external_origin = match words.word() {
        Some(device) => Some(device.parse().ok()?),
        None => None,
    };
    Some(Target::Thin { pool, id, external_origin })
}

fn snapshot(words: &mut Words<'_>) -> Option<SnapshotTable> {
    Some(SnapshotTable {
        origin: words.device()?,
        cow: words.device()?,
        store: words.owned()?,
        chunk: words.sectors()?,
    })
}

fn raid(words: &mut Words<'_>) -> Option<Target> {
    let level = words.owned()?;
    let parameters = words.counted()?;
    let count = words.number()?;
    let legs = words.repeated(count, |words| {
        Some(RaidLeg { metadata: words.device_or_none()?, data: words.device_or_none()? })
    })?;
    Some(Target::Raid { level, parameters, legs })
}

fn mirror(words: &mut Words<'_>) -> Option<Target> {
    let log = words.owned()?;
    let log_parameters = words.counted()?;
    let count = words.number()?;
    Some(Target::Mirror { log, log_parameters, legs: words.repeated(count, place)? })
}

fn cache(words: &mut Words<'_>) -> Option<CacheTable> {
    Some(CacheTable {
        metadata: words.device()?,
        cache: words.device()?,
        origin: words.device()?,
        block: words.sectors()?,
        features: words.counted()?,
        policy: words.owned()?,
        policy_settings: words.counted()?,
    })
}

fn writecache(words: &mut Words<'_>) -> Option<Target> {
    Some(Target::Writecache {
        medium: words.owned()?,
        origin: words.device()?,
        cache: words.device()?,
        block: words.number().map(Bytes::new)?,
        options: words.counted()?,
    })
}

/// `cipher key iv-offset device start`.
fn crypt(words: &mut Words<'_>) -> Option<Target> {
    let cipher = words.owned()?;
    words.word()?;
    words.word()?;
    Some(Target::Crypt { cipher, place: place(words)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn dev(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 253, minor }
    }

    #[test]
    fn lines_of_every_known_target_parse() {
        let place = |minor, start| Place { device: dev(minor), start: Sectors::new(start) };
        assert_eq!(Target::parse("linear", "253:1 2048"), Ok(Target::Linear(place(1, 2048))));
        assert_eq!(
            Target::parse("striped", "2 128 253:1 2048 253:2 0"),
            Ok(Target::Striped { chunk: Sectors::new(128), stripes: vec![place(1, 2048), place(2, 0)] })
        );
        assert_eq!(
            Target::parse("thin", "253:4 16777215"),
            Ok(Target::Thin { pool: dev(4), id: 0xff_ffff, external_origin: None })
        );
        let pool = Target::parse("thin-pool", "253:2 253:3 128 480 1 skip_block_zeroing ").unwrap();
        let Target::ThinPool(pool) = pool else { panic!("{pool:?}") };
        assert_eq!((pool.block, pool.low_water), (Sectors::new(128), 480));
        assert_eq!(pool.features, ["skip_block_zeroing"]);
        let raid = Target::parse("raid", "raid1 3 0 region_size 4096 2 253:4 253:5 - - ").unwrap();
        let Target::Raid { level, legs, .. } = raid else { panic!("{raid:?}") };
        assert_eq!(level, "raid1");
        assert_eq!(legs[0], RaidLeg { metadata: Some(dev(4)), data: Some(dev(5)) });
        assert_eq!(legs[1], RaidLeg { metadata: None, data: None });
        let cache = "253:1 253:2 253:3 128 2 metadata2 writethrough mq 0";
        assert!(matches!(Target::parse("cache", cache), Ok(Target::Cache(_))));
        let write = "s 253:3 253:4 4096 0";
        assert!(matches!(Target::parse("writecache", write), Ok(Target::Writecache { .. })));
        let snapshot = "253:1 253:2 PO 8";
        assert!(matches!(Target::parse("snapshot", snapshot), Ok(Target::Snapshot(_))));
        let mirror = "core 2 1024 nosync 2 253:1 0 253:2 4096 1 handle_errors";
        assert!(matches!(Target::parse("mirror", mirror), Ok(Target::Mirror { .. })));
        assert!(matches!(Target::parse("delay", "253:1 0 5"), Ok(Target::Other { .. })));
    }

    #[test]
    fn a_key_is_neither_kept_nor_told() {
        let target = Target::parse("crypt", "aes-xts-plain64 00aaSECRET 0 253:1 4096 1 allow_discards");
        assert!(!format!("{target:?}").contains("SECRET"));
        assert!(target.is_ok());
        let error = Target::parse("crypt", "aes-xts-plain64 00aaSECRET 0 nonsense").unwrap_err();
        assert!(!format!("{error:?} {error}").contains("SECRET"));
    }

    #[test]
    fn short_and_wrong_lines_are_errors() {
        for (kind, text) in [
            ("linear", "253:1"),
            ("linear", "/dev/sda 0"),
            ("striped", "4294967295 128 253:1 0"),
            ("thin", "253:1 x"),
            ("raid", "raid1 99999999999999 x"),
        ] {
            assert!(Target::parse(kind, text).is_err(), "{kind} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_us_panic(
            kind in prop::sample::select(vec![
                "linear", "striped", "thin-pool", "thin", "snapshot", "raid", "mirror", "cache", "writecache",
                "crypt", "x",
            ]),
            text in "([0-9]{1,20}|253:[0-9]{1,3}|-|raid1|\\PC{0,4}| ){0,20}",
        ) {
            let _ = Target::parse(kind, &text);
        }
    }
}
