//! From LVM's messages to the errors of this library.
//!
//! LVM ends nearly every failed command with the same code, so what failed is in its messages alone. They are the
//! last resort: an operation looks at the metadata first and gives a better answer where it can. All texts that
//! anything here depends on stand in one table, and the suites make a real LVM say them.

use crate::run::{LogRecord, Reply, ReturnCode};
use crate::{Effect, Error, Kind, Space};

/// Messages above this level are prints and warnings.
const LEVEL_ERROR: u8 = 3;

/// One kind of refusal.
#[derive(Clone, Copy)]
struct Pattern {
    /// Texts that all stand in one message, in this order.
    parts: &'static [&'static str],
    kind: Kind,
    effect: Effect,
    advice: Option<&'static str>,
}

const fn refused(parts: &'static [&'static str], kind: Kind) -> Pattern {
    Pattern { parts, kind, effect: Effect::None, advice: None }
}

const fn broke(parts: &'static [&'static str], kind: Kind) -> Pattern {
    Pattern { parts, kind, effect: Effect::Unknown, advice: None }
}

const fn advised(pattern: Pattern, advice: &'static str) -> Pattern {
    Pattern { advice: Some(advice), ..pattern }
}

/// What a held lock looks like with `wait_for_locks=0`.
const LOCK_HELD: &[&str] = &["flock failed: Resource temporarily unavailable"];

/// What LVM says when the kernel lacks a target and modprobe did not bring it.
const TARGET_MISSING: &[&str] = &["Required device-mapper target(s) not detected"];

/// What to do about a pool whose transaction id is not the group's.
const OTHER_TIME: &str =
    "the pool and the group's metadata are of different times; recover the group before anything else";

/// The texts of LVM 2.03.16 and later, most telling first: a pattern above wins over one below whichever message
/// comes first, since LVM often adds general words to a cause, before or after it.
const PATTERNS: &[Pattern] = &[
    advised(refused(LOCK_HELD, Kind::Busy), "try again when the other LVM command has ended"),
    // Consistency first: these make everything else that LVM says about the group doubtful.
    advised(refused(&["transaction_id is", "while expected"], Kind::Inconsistent), OTHER_TIME),
    advised(refused(&["Cannot use thin pool", "Expected transaction id"], Kind::Inconsistent), OTHER_TIME),
    // Said as a warning. LVM then cannot tell how full the pool is, and calls it full.
    advised(refused(&["Thin pool", "has unexpected transaction id"], Kind::Inconsistent), OTHER_TIME),
    advised(
        refused(&["Multiple VGs found with the same name"], Kind::Inconsistent),
        "rename one of the groups by its uuid",
    ),
    advised(
        refused(&["Cannot update volume group", "with duplicate PV devices"], Kind::Inconsistent),
        "two devices carry the same PV; detach the copy or give it new uuids with vgimportclone",
    ),
    advised(
        refused(&["Manual repair required"], Kind::Inconsistent),
        "repair the pool with it inactive; its old metadata is kept",
    ),
    advised(
        refused(&["Cannot access VG", "with system ID"], Kind::Foreign),
        "the group belongs to another host; take it over explicitly if that host has given it up",
    ),
    advised(
        refused(&["rejected by filter"], Kind::Foreign),
        "the device is not among those that these workers may see",
    ),
    advised(
        refused(&["while PVs are missing"], Kind::MissingPv),
        "bring the missing disk back, or remove it from the group explicitly",
    ),
    refused(&["Refusing activation of partial LV"], Kind::MissingPv),
    refused(&["while physical volumes are missing"], Kind::MissingPv),
    refused(&["Refusing refresh of partial LV"], Kind::MissingPv),
    refused(&["Cannot update partial volume group"], Kind::MissingPv),
    // Space.
    advised(
        refused(&["exceeds maximum metadata size"], Kind::NoSpace(Space::Metadata)),
        "the group's metadata area is full and cannot grow; remove volumes or make another group",
    ),
    refused(&["metadata on", "too large for circular buffer"], Kind::NoSpace(Space::Metadata)),
    refused(&["Insufficient suitable", "allocatable extents"], Kind::NoSpace(Space::Legs)),
    refused(&["Not enough PVs with free space available for parallel"], Kind::NoSpace(Space::Legs)),
    refused(&["Number of stripes", "must not exceed number of physical volumes"], Kind::NoSpace(Space::Legs)),
    refused(&["insufficient free space"], Kind::NoSpace(Space::Data)),
    refused(&["Insufficient free space"], Kind::NoSpace(Space::Data)),
    refused(&["No free extents in"], Kind::NoSpace(Space::Data)),
    refused(&["No specified PVs have space available"], Kind::NoSpace(Space::Data)),
    refused(&["free space in thin pool", "reached threshold"], Kind::NoSpace(Space::Data)),
    broke(&["message ioctl on", "No space left on device"], Kind::NoSpace(Space::Metadata)),
    // Use.
    refused(&["contains a filesystem in use"], Kind::InUse),
    refused(&["Logical volume", "is used by another device"], Kind::InUse),
    refused(&["Logical volume", "in use."], Kind::InUse),
    refused(&["Logical volume", "is already in use by"], Kind::InUse),
    refused(&["is already in volume group"], Kind::InUse),
    refused(&["is used by VG"], Kind::InUse),
    refused(&["Can't initialize physical volume", "of volume group"], Kind::InUse),
    refused(&["Physical volume", "still in use"], Kind::InUse),
    refused(&["Can't open", "exclusively"], Kind::InUse),
    refused(&["Can't remove logical volume", "used by"], Kind::InUse),
    advised(
        refused(&["Aborted wiping of"], Kind::InUse),
        "something is on the device; look at it, and consent to losing it if it is not needed",
    ),
    // Names.
    refused(&["already exists in volume group"], Kind::AlreadyExists),
    refused(&["Unable to create LV", "name already in use"], Kind::AlreadyExists),
    refused(&["olume group", "already exists"], Kind::AlreadyExists),
    refused(&["Volume group", "not found"], Kind::NotFound),
    refused(&["Failed to find logical volume"], Kind::NotFound),
    refused(&["not found in", "olume group"], Kind::NotFound),
    refused(&["No device found for"], Kind::NotFound),
    refused(&["Cannot use", "device not found"], Kind::NotFound),
    refused(&["Failed to find physical volume"], Kind::NotFound),
    refused(&["has invalid characters"], Kind::InvalidArgument),
    refused(&["device is too small"], Kind::InvalidArgument),
    refused(&["New size", "existing size"], Kind::InvalidArgument),
    refused(&["Unable to extend", "exceeds limit"], Kind::InvalidArgument),
    refused(&["names must differ"], Kind::InvalidArgument),
    // The machine.
    advised(
        refused(&["without using device-mapper kernel driver"], Kind::Unsupported),
        "this kernel has no device-mapper, or these workers may only write metadata",
    ),
    advised(refused(TARGET_MISSING, Kind::Unsupported), "load the kernel's module for this target"),
    advised(
        refused(&["target support missing from kernel"], Kind::Unsupported),
        "load the kernel's module for this target",
    ),
    broke(&["Error reading device"], Kind::Io),
    broke(&["Error writing device"], Kind::Io),
    broke(&["Input/output error"], Kind::Io),
    broke(&["Failed to write VG"], Kind::Io),
];

fn matches(message: &str, parts: &[&str]) -> bool {
    let mut rest = message;
    parts.iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Whether a command failed only because another one held a lock: nothing was done, and it may be tried again.
pub(crate) fn is_lock_held(records: &[LogRecord]) -> bool {
    records.iter().any(|record| matches(&record.message, LOCK_HELD))
}

/// Whether a command failed because the kernel lacks a target. The library remembers that for its process's life,
/// also after the module has been loaded.
pub(crate) fn is_target_missing(records: &[LogRecord]) -> bool {
    records.iter().any(|record| matches(&record.message, TARGET_MISSING))
}

/// The error of a command that LVM refused, from its code and its messages.
///
/// What no message explains is [`Kind::Other`] with [`Effect::Unknown`]: the caller looks at the metadata.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use lvm::run::{LogRecord, Reply, ReturnCode};
/// use lvm::{Effect, Kind, classify};
///
/// let message = r#"Volume group "data" not found"#.to_owned();
/// let reply = Reply {
///     code: ReturnCode::Failed,
///     records: vec![LogRecord { level: 3, message }],
///     truncated: false,
///     elapsed: Duration::from_millis(30),
/// };
/// let error = classify::failure("remove group data", &reply);
/// assert_eq!((error.kind(), error.effect()), (Kind::NotFound, Effect::None));
/// assert_eq!(error.to_string(), r#"could not remove group data: Volume group "data" not found"#);
/// ```
#[must_use]
pub fn failure(tried: &str, reply: &Reply) -> Error {
    if reply.code == ReturnCode::Unflushed {
        return unflushed(tried, reply);
    }
    let cause = PATTERNS.iter().find_map(|pattern| {
        // Duplicate names and suchlike are said as warnings, so all records count.
        let record = reply.records.iter().find(|record| matches(&record.message, pattern.parts))?;
        Some((pattern, record))
    });
    let (kind, effect, advice) = match (reply.code, cause) {
        (_, Some((pattern, _))) => (pattern.kind, pattern.effect, pattern.advice),
        (ReturnCode::InvalidParameters, None) => (Kind::InvalidArgument, Effect::None, None),
        (ReturnCode::NoSuchCommand, None) => (Kind::Unsupported, Effect::None, None),
        (ReturnCode::InitFailed, None) => (Kind::Other, Effect::None, None),
        (ReturnCode::Failed | ReturnCode::Succeeded | ReturnCode::Unflushed, None) => {
            (Kind::Other, Effect::Unknown, None)
        }
    };
    // Of several errors the first is the cause, the others are what it led to.
    let first = || reply.records.iter().find(|record| record.level <= LEVEL_ERROR);
    let answer = cause.map(|(_, record)| record).or_else(first);
    let answer = answer.map_or("LVM gave no reason", |record| record.message.trim());
    let error = Error::new(kind, tried)
        .with_answer(answer)
        .with_effect(effect)
        .with_records(reply.records.clone())
        .with_elapsed(reply.elapsed);
    match advice {
        Some(advice) => error.with_advice(advice),
        None => error,
    }
}

/// The error of a command whose changes may not outlive a loss of power; the worker's own words come last.
fn unflushed(tried: &str, reply: &Reply) -> Error {
    let answer = reply.records.last().map_or("a device could not be flushed", |record| record.message.trim());
    Error::new(Kind::Io, tried)
        .with_answer(format!("it was done, but may be lost with the power: {answer}"))
        .with_advice("look at the device; the group is closed until all its PVs can be flushed")
        .with_effect(Effect::Unknown)
        .with_records(reply.records.clone())
        .with_elapsed(reply.elapsed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn classified(code: ReturnCode, messages: &[(u8, &str)]) -> Error {
        let record =
            |(level, message): &(u8, &str)| LogRecord { level: *level, message: (*message).to_owned() };
        let records = messages.iter().map(record).collect();
        failure("try", &Reply { code, records, truncated: false, elapsed: Duration::ZERO })
    }

    /// What LVM 2.03.16 said to commands that failed on a real machine.
    #[test]
    fn texts_of_real_commands() {
        let said: &[(&str, Kind)] = &[
            (r#"Volume group "nope" not found"#, Kind::NotFound),
            (r#"Failed to find logical volume "wv/absent""#, Kind::NotFound),
            ("Logical volume absent not found in volume group wv.", Kind::NotFound),
            (r#"Existing logical volume "absent" not found in volume group "wv""#, Kind::NotFound),
            ("Pool nopool not found in Volume group wv.", Kind::NotFound),
            ("Snapshot origin LV absent not found in Volume group wv.", Kind::NotFound),
            ("No device found for /dev/absent.", Kind::NotFound),
            ("Cannot use /dev/absent: device not found", Kind::NotFound),
            (r#"Logical Volume "a" already exists in volume group "wv""#, Kind::AlreadyExists),
            ("A volume group called wv already exists.", Kind::AlreadyExists),
            (
                r#"Volume group "wv" has insufficient free space (242 extents): 1000000 required."#,
                Kind::NoSpace(Space::Data),
            ),
            (
                "Insufficient free space: 2048 extents needed, but only 244 available",
                Kind::NoSpace(Space::Data),
            ),
            (
                "Number of stripes (4) must not exceed number of physical volumes (2)",
                Kind::NoSpace(Space::Legs),
            ),
            ("Physical volume '/dev/loop0' is already in volume group 'wv'", Kind::InUse),
            (
                r#"Can't initialize physical volume "/dev/loop0" of volume group "wv" without -ff"#,
                Kind::InUse,
            ),
            ("PV /dev/loop0 is used by VG wv so please use vgreduce first.", Kind::InUse),
            (r#"Physical volume "/dev/loop0" still in use"#, Kind::InUse),
            ("Cannot access VG wv with system ID other with unknown local system ID.", Kind::Foreign),
            ("Cannot change VG wv while PVs are missing.", Kind::MissingPv),
            ("Cannot update volume group dup with duplicate PV devices.", Kind::Inconsistent),
            ("/run/lock/lvm/V_wv: flock failed: Resource temporarily unavailable", Kind::Busy),
            ("Can't create raid1 without using device-mapper kernel driver.", Kind::Unsupported),
            (r#"Volume group name "x y" has invalid characters."#, Kind::InvalidArgument),
            ("New size (2 extents) matches existing size (2 extents).", Kind::InvalidArgument),
        ];
        for (message, kind) in said {
            let error =
                classified(ReturnCode::Failed, &[(3, message), (3, "Cannot process volume group wv")]);
            assert_eq!((error.kind(), error.effect()), (*kind, Effect::None), "{message}");
            assert_eq!(error.answer(), Some(*message));
        }
    }

    #[test]
    fn a_cause_wins_over_what_it_led_to() {
        let error = classified(
            ReturnCode::Failed,
            &[
                (3, "Physical volume '/dev/loop1' is already in volume group 'wv'"),
                (3, "Unable to add physical volume '/dev/loop1' to volume group 'wv'"),
                (3, "/dev/loop1: physical volume not initialized."),
            ],
        );
        assert_eq!(error.kind(), Kind::InUse);
        let error = classified(
            ReturnCode::Failed,
            &[
                (4, "WARNING: Thin pool vgt/pool has unexpected transaction id 9, expecting 1."),
                (3, "Cannot create new thin volume, free space in thin pool vgt/pool reached threshold."),
            ],
        );
        assert_eq!(error.kind(), Kind::Inconsistent);
        let error = classified(
            ReturnCode::Failed,
            &[(3, "Can't get lock for wv."), (3, "/x/V_wv: flock failed: Resource temporarily unavailable")],
        );
        assert_eq!(error.kind(), Kind::Busy);
    }

    #[test]
    fn what_nothing_explains_may_have_changed_something() {
        let error = classified(ReturnCode::Failed, &[(4, "WARNING: odd"), (3, "Something new")]);
        assert_eq!((error.kind(), error.effect()), (Kind::Other, Effect::Unknown));
        assert_eq!(error.answer(), Some("Something new"));
        assert_eq!(classified(ReturnCode::Failed, &[]).answer(), Some("LVM gave no reason"));
        assert_eq!(classified(ReturnCode::InvalidParameters, &[]).kind(), Kind::InvalidArgument);
        assert_eq!(classified(ReturnCode::NoSuchCommand, &[]).kind(), Kind::Unsupported);
    }

    #[test]
    fn what_was_done_and_not_flushed_is_told_so_whatever_lvm_said_before() {
        let error = classified(
            ReturnCode::Unflushed,
            &[(4, "Volume group \"data\" not found"), (3, "flush /dev/sdb: Input/output error")],
        );
        assert_eq!((error.kind(), error.effect()), (Kind::Io, Effect::Unknown));
        assert!(error.answer().unwrap().ends_with("flush /dev/sdb: Input/output error"));
    }

    #[test]
    fn parts_must_stand_in_their_order() {
        assert!(matches("a b c", &["a", "c"]));
        assert!(!matches("c a", &["a", "c"]));
        assert!(!matches("aa", &["a", "a", "a"]));
    }
}
