//! RAID, mirrors and stripes (Documentation/admin-guide/device-mapper/dm-raid.rst).

use devices::{DeviceNumber, Sectors};

use super::{Fill, Words};

/// How a RAID volume fares.
///
/// Only [`Self::legs`] says whether legs have failed: the sync ratio stays at its end when a leg dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidStatus {
    /// `raid1`, `raid5_ls`, ….
    pub level: String,
    /// The health of each leg, in order.
    pub legs: Vec<LegHealth>,
    /// How far the present action has come.
    pub synced: Sectors,
    /// Where it ends.
    pub sync_end: Sectors,
    /// What the RAID does at present; older kernels do not say.
    pub action: Option<SyncAction>,
    /// Sectors found different by the last check; older kernels do not say.
    pub mismatches: Option<u64>,
    /// Where the data begins on each leg, other than zero during and after a reshape.
    pub data_offset: Option<Sectors>,
    /// The health of a RAID 4/5/6 journal, where there is one.
    pub journal: Option<LegHealth>,
}

/// The kernel's health letter of one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegHealth {
    /// `A`: alive and in sync.
    InSync,
    /// `a`: alive, not in sync yet.
    OutOfSync,
    /// `D`: dead; it failed and is not used any more.
    Dead,
    /// `-`: no device, the table has none.
    Missing,
    /// A letter of another kernel, or of another target.
    Other(char),
}

impl LegHealth {
    const fn from_letter(letter: char) -> Self {
        match letter {
            'A' => Self::InSync,
            'a' => Self::OutOfSync,
            'D' => Self::Dead,
            '-' => Self::Missing,
            other => Self::Other(other),
        }
    }

    /// Whether the leg works, be it in sync or not.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        matches!(self, Self::InSync | Self::OutOfSync)
    }
}

/// What a RAID does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncAction {
    /// Nothing.
    Idle,
    /// Nothing, and it may not begin anything.
    Frozen,
    /// It makes its legs equal after creation or a crash.
    Resync,
    /// It fills a leg that was replaced or came back.
    Recover,
    /// It compares the legs.
    Check,
    /// It compares the legs and makes them equal.
    Repair,
    /// It changes its form.
    Reshape,
    /// Another word.
    Other(String),
}

impl SyncAction {
    fn from_word(word: &str) -> Self {
        match word {
            "idle" => Self::Idle,
            "frozen" => Self::Frozen,
            "resync" => Self::Resync,
            "recover" => Self::Recover,
            "check" => Self::Check,
            "repair" => Self::Repair,
            "reshape" => Self::Reshape,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl RaidStatus {
    /// The indices of the legs that do not work.
    #[must_use]
    pub fn failed_legs(&self) -> Vec<usize> {
        let legs = self.legs.iter().enumerate();
        legs.filter(|(_, leg)| !leg.is_alive()).map(|(index, _)| index).collect()
    }

    /// Whether every leg works and is in sync.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.legs.iter().all(|leg| *leg == LegHealth::InSync)
    }
}

/// `<level> <#legs> <health letters> <synced>/<end> [<action> <mismatches> [<data offset> [<journal>]]]`
pub(super) fn raid(words: &mut Words<'_>) -> Option<RaidStatus> {
    let level = words.owned()?;
    let count: usize = words.number()?;
    let legs: Vec<_> = words.word()?.chars().map(LegHealth::from_letter).collect();
    if legs.len() != count {
        return None;
    }
    let (synced, sync_end) = words.ratio()?;
    let action = words.word().map(SyncAction::from_word);
    let mismatches = words.number();
    let data_offset = words.sectors();
    let journal = match words.word() {
        Some("-") | None => None,
        Some(letter) => letter.chars().next().map(LegHealth::from_letter),
    };
    Some(RaidStatus {
        level,
        legs,
        synced: Sectors::new(synced),
        sync_end: Sectors::new(sync_end),
        action,
        mismatches,
        data_offset,
        journal,
    })
}

/// How an old mirror fares; for a pvmove, how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorStatus {
    /// The mirrored devices and their health: alive, `D` dead, `S` failed to sync, `R` failed to read, ….
    pub legs: Vec<(DeviceNumber, LegHealth)>,
    /// Regions that are equal on all legs.
    pub synced: Fill,
    /// `core`, `disk`, ….
    pub log: String,
}

/// `<#legs> <device>… <synced>/<regions> 1 <health letters> <#log words> <log> …`
pub(super) fn mirror(words: &mut Words<'_>) -> Option<MirrorStatus> {
    let count = words.number()?;
    let devices = words.repeated(count, Words::device)?;
    let synced = words.ratio()?.into();
    words.word()?;
    let health: Vec<_> = words.word()?.chars().map(LegHealth::from_letter).collect();
    if health.len() != devices.len() {
        return None;
    }
    words.word()?;
    let log = words.owned()?;
    Some(MirrorStatus { legs: devices.into_iter().zip(health).collect(), synced, log })
}

/// How a striped range fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedStatus {
    /// The devices; one that had an error is dead until the table is loaded again.
    pub stripes: Vec<(DeviceNumber, LegHealth)>,
}

/// `<#stripes> <device>… 1 <health letters>`
pub(super) fn striped(words: &mut Words<'_>) -> Option<StripedStatus> {
    let count = words.number()?;
    let devices = words.repeated(count, Words::device)?;
    words.word()?;
    let health: Vec<_> = words.word()?.chars().map(LegHealth::from_letter).collect();
    (health.len() == devices.len())
        .then(|| StripedStatus { stripes: devices.into_iter().zip(health).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<RaidStatus> {
        raid(&mut Words::new(line))
    }

    #[test]
    fn a_dead_leg_shows_although_the_sync_ratio_is_full() {
        let status = parse("raid1 2 AD 65536/65536 idle 0 0 -").unwrap();
        assert_eq!(status.failed_legs(), [1]);
        assert!(!status.is_healthy());
        assert_eq!(status.synced, status.sync_end);
        assert_eq!(status.journal, None);
    }

    #[test]
    fn a_sync_under_way_and_older_kernels_are_understood() {
        let status = parse("raid5_ls 3 Aaa 2/1024 recover 16").unwrap();
        assert_eq!(status.failed_legs(), [0_usize; 0]);
        assert!(!status.is_healthy());
        assert_eq!((status.action, status.mismatches), (Some(SyncAction::Recover), Some(16)));
        assert_eq!(parse("raid1 2 AA 5/5").unwrap().action, None);
        assert_eq!(parse("raid6_zr 4 AAA 5/5 idle 0"), None, "a letter is missing");
    }

    #[test]
    fn mirrors_and_stripes_name_their_devices() {
        let status = mirror(&mut Words::new("2 253:4 253:5 12/400 1 AA 1 core")).unwrap();
        assert_eq!((status.synced, status.log.as_str()), (Fill::new(12, 400), "core"));
        let status = striped(&mut Words::new("2 7:0 7:1 1 AD")).unwrap();
        assert_eq!(status.stripes[1], (DeviceNumber { major: 7, minor: 1 }, LegHealth::Dead));
    }
}
