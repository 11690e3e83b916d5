//! Thin pools and thin volumes (Documentation/admin-guide/device-mapper/thin-provisioning.rst).

use devices::Sectors;

use super::{Fill, Words};

/// How a thin pool fares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinPoolStatus {
    /// It answers, although perhaps no writes are possible: see [`ThinPoolUse::mode`].
    Working(ThinPoolUse),
    /// It has failed: nothing can be read or written until it is repaired.
    Failed,
    /// Its state could not be found out.
    Unreadable,
}

/// What a working thin pool says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinPoolUse {
    /// The transaction id, which must be the one in LVM's metadata.
    pub transaction_id: u64,
    /// Blocks of the metadata volume, 4 KiB each.
    pub metadata: Fill,
    /// Blocks of the data volume, one chunk each.
    pub data: Fill,
    /// The metadata block at which a held metadata snapshot begins.
    pub held_root: Option<u64>,
    /// What is possible at present.
    pub mode: PoolMode,
    /// What becomes of discards.
    pub discards: Discards,
    /// What becomes of writes that find no free block.
    pub when_full: WhenFull,
    /// The pool found its metadata damaged and wants a check before it writes again.
    pub needs_check: bool,
    /// Below this many free metadata blocks an event comes; older kernels do not say.
    pub metadata_low_water: Option<u64>,
}

/// What a thin pool can do at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// Everything.
    ReadWrite,
    /// Nothing can be changed, mostly since the metadata is full or damaged.
    ReadOnly,
    /// Mapped blocks can be written, new ones cannot be had.
    OutOfDataSpace,
}

/// What a thin pool does with discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discards {
    /// It frees blocks and passes the discard on to the data volume.
    PassDown,
    /// It frees blocks.
    NoPassDown,
    /// Nothing.
    Ignore,
}

/// What a thin pool does with a write that finds no free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits for the pool to grow, by default for 60 s.
    Queue,
    /// It fails.
    Error,
}

/// `<transaction id> <used>/<total metadata> <used>/<total data> <held root> <mode> <discards> <when full>
/// <needs check> <metadata low water>`
pub(super) fn thin_pool(text: &str) -> Option<ThinPoolStatus> {
    match text.trim() {
        "Fail" => return Some(ThinPoolStatus::Failed),
        "Error" => return Some(ThinPoolStatus::Unreadable),
        _ => {}
    }
    let words = &mut Words::new(text);
    let transaction_id = words.number()?;
    let metadata = words.ratio()?.into();
    let data = words.ratio()?.into();
    let held_root = match words.word()? {
        "-" => None,
        root => Some(root.parse().ok()?),
    };
    let mode = match words.word()? {
        "rw" => PoolMode::ReadWrite,
        "ro" => PoolMode::ReadOnly,
        "out_of_data_space" => PoolMode::OutOfDataSpace,
        _ => return None,
    };
    let discards = match words.word()? {
        "discard_passdown" => Discards::PassDown,
        "no_discard_passdown" => Discards::NoPassDown,
        "ignore_discard" => Discards::Ignore,
        _ => return None,
    };
    let when_full = match words.word()? {
        "queue_if_no_space" => WhenFull::Queue,
        "error_if_no_space" => WhenFull::Error,
        _ => return None,
    };
    let needs_check = match words.word() {
        Some("needs_check") => true,
        Some("-") | None => false,
        Some(_) => return None,
    };
    let metadata_low_water = words.number();
    Some(ThinPoolStatus::Working(ThinPoolUse {
        transaction_id,
        metadata,
        data,
        held_root,
        mode,
        discards,
        when_full,
        needs_check,
        metadata_low_water,
    }))
}

/// How a thin volume fares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinStatus {
    /// It works.
    Mapped {
        /// How much of it has blocks in the pool, in whole chunks; shared blocks count.
        mapped: Sectors,
        /// The last sector that has a block; `None` when none has.
        highest: Option<u64>,
    },
    /// The pool has failed.
    Failed,
    /// Its state could not be found out.
    Unreadable,
}

/// `<mapped sectors> <highest mapped sector>`
pub(super) fn thin(text: &str) -> Option<ThinStatus> {
    match text.trim() {
        "Fail" => return Some(ThinStatus::Failed),
        "Error" | "-" => return Some(ThinStatus::Unreadable),
        _ => {}
    }
    let words = &mut Words::new(text);
    let mapped = words.sectors()?;
    let highest = match words.word()? {
        "-" => None,
        sector => Some(sector.parse().ok()?),
    };
    Some(ThinStatus::Mapped { mapped, highest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_pool_tells_everything() {
        let line = "3 11/1024 25/3200 - rw discard_passdown queue_if_no_space - 1024 ";
        assert_eq!(
            thin_pool(line),
            Some(ThinPoolStatus::Working(ThinPoolUse {
                transaction_id: 3,
                metadata: Fill::new(11, 1024),
                data: Fill::new(25, 3200),
                held_root: None,
                mode: PoolMode::ReadWrite,
                discards: Discards::PassDown,
                when_full: WhenFull::Queue,
                needs_check: false,
                metadata_low_water: Some(1024),
            }))
        );
    }

    #[test]
    fn pools_in_trouble_are_told_apart() {
        let line = "0 1/2 3/3 17 out_of_data_space no_discard_passdown error_if_no_space needs_check";
        let Some(ThinPoolStatus::Working(used)) = thin_pool(line) else { panic!() };
        assert_eq!((used.mode, used.when_full), (PoolMode::OutOfDataSpace, WhenFull::Error));
        assert_eq!((used.needs_check, used.held_root), (true, Some(17)));
        assert_eq!(used.metadata_low_water, None);
        assert_eq!(thin_pool("Fail"), Some(ThinPoolStatus::Failed));
        assert_eq!(thin_pool("Error"), Some(ThinPoolStatus::Unreadable));
        assert_eq!(thin_pool("0 1/2 3/3 - wo discard_passdown queue_if_no_space"), None);
    }

    #[test]
    fn thin_volumes_say_how_much_is_mapped() {
        let mapped = ThinStatus::Mapped { mapped: Sectors::new(2048), highest: Some(4095) };
        assert_eq!(thin("2048 4095"), Some(mapped));
        assert_eq!(thin("0 -"), Some(ThinStatus::Mapped { mapped: Sectors::ZERO, highest: None }));
        assert_eq!(thin("Fail"), Some(ThinStatus::Failed));
        assert_eq!(thin("-"), Some(ThinStatus::Unreadable));
        assert_eq!(thin("12"), None);
    }
}
