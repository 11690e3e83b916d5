//! Giving blocks that no file uses back to the pools, by each class's schedule.
//!
//! When a volume was trimmed last is the time of change of a file of its id, so that a restart trims nothing too early or
//! twice. One is trimmed at a time, and each at a moment of its own within the last eighth of its period.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::{Event, Shared};
use crate::class::TrimSchedule;
use crate::{Content, Error, Kind, Volume};

/// How long at most until the volumes are looked at again: some are mounted or made meanwhile.
const LOOK: Duration = Duration::from_secs(15 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn run(shared: &Shared) {
    let mut told = String::new();
    while !shared.is_stopped() {
        let next = match look(shared) {
            Ok(next) => next,
            Err(error) => {
                let text = error.to_string();
                if text != told {
                    shared.report(&Event::TrimFailed { volume: None, error });
                    told = text;
                }
                LOOK
            }
        };
        shared.pause(next.min(LOOK));
    }
}

/// Trims what is due, and tells how long nothing is.
fn look(shared: &Shared) -> Result<Duration, Error> {
    let settings = shared.node.settings();
    let records = Records::in_directory(settings.state_dir.join("trimmed"))?;
    let volumes = shared.node.volumes()?;
    records.keep_only(&volumes)?;
    let mut next = LOOK;
    for volume in &volumes {
        let class = settings.classes.iter().find(|class| class.name == volume.class);
        let Some(period) = class.and_then(|class| class.spec.volume.trim.period()) else { continue };
        if !matches!(volume.content, Content::Filesystem(_)) {
            continue;
        }
        if shared.is_stopped() {
            break;
        }
        let left = records.left(volume, period)?;
        if left.is_zero() {
            trim(shared, volume, &records)?;
        } else {
            next = next.min(left);
        }
    }
    Ok(next)
}

fn trim(shared: &Shared, volume: &Volume, records: &Records) -> Result<(), Error> {
    let begun = Instant::now();
    let event = match shared.node.trim(&volume.id) {
        Ok(freed) => Event::Trimmed { volume: volume.id.clone(), freed, took: begun.elapsed() },
        // It is not mounted now, or gone: looked at again soon.
        Err(error) if error.kind() == Kind::NotFound => return Ok(()),
        // A kind of volume that is never trimmed.
        Err(error) if error.kind() == Kind::FailedPrecondition => return records.note(volume),
        Err(error) => Event::TrimFailed { volume: Some(volume.id.clone()), error },
    };
    // Also after a failure: what cannot be trimmed now is tried again a period later, not all the time.
    records.note(volume)?;
    shared.report(&event);
    Ok(())
}

impl TrimSchedule {
    /// How long lies between two runs; `None` for never.
    pub(crate) const fn period(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Daily => Some(DAY),
            Self::Weekly => Some(DAY.saturating_mul(7)),
        }
    }
}

/// When each volume was trimmed last.
struct Records(PathBuf);

impl Records {
    fn in_directory(path: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&path).map_err(|cause| failed(&path, cause))?;
        Ok(Self(path))
    }

    /// How long until a volume is due. One that is seen for the first time counts as just trimmed.
    fn left(&self, volume: &Volume, period: Duration) -> Result<Duration, Error> {
        let path = self.0.join(volume.id.as_str());
        match fs::metadata(&path).and_then(|there| there.modified()) {
            Ok(last) => Ok(left(volume.id.as_str(), last, SystemTime::now(), period)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                self.note(volume)?;
                Ok(period)
            }
            Err(cause) => Err(failed(&path, cause)),
        }
    }

    fn note(&self, volume: &Volume) -> Result<(), Error> {
        let path = self.0.join(volume.id.as_str());
        let noted = File::options().create(true).truncate(false).write(true).open(&path);
        noted.and_then(|file| file.set_modified(SystemTime::now())).map_err(|cause| failed(&path, cause))
    }

    /// Forgets volumes that are gone.
    fn keep_only(&self, volumes: &[Volume]) -> Result<(), Error> {
        let known: BTreeSet<&str> = volumes.iter().map(|volume| volume.id.as_str()).collect();
        for entry in fs::read_dir(&self.0).map_err(|cause| failed(&self.0, cause))? {
            let entry = entry.map_err(|cause| failed(&self.0, cause))?;
            if entry.file_name().to_str().is_none_or(|name| !known.contains(name)) {
                fs::remove_file(entry.path()).map_err(|cause| failed(&entry.path(), cause))?;
            }
        }
        Ok(())
    }
}

fn failed(path: &Path, cause: std::io::Error) -> Error {
    Error::system(format!("note in {} when volumes were trimmed", path.display()), cause)
}

/// How long until a volume is due that was trimmed last at some moment: its period, less up to an eighth of it that is the
/// volume's own. After a clock that went back it is not later than a period from now.
fn left(id: &str, last: SystemTime, now: SystemTime, period: Duration) -> Duration {
    let spread = id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let early = period / 8 * (spread % 1000) / 1000;
    let since = now.duration_since(last).unwrap_or_default();
    (period - early).saturating_sub(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_volume_has_its_own_moment_near_the_end_of_its_period() {
        let week = TrimSchedule::Weekly.period().unwrap();
        let now = SystemTime::now();
        let mut moments = BTreeSet::new();
        for nth in 0..100 {
            let id = format!("volume-{nth}");
            let left = left(&id, now, now, week);
            assert!(left <= week && left >= week - week / 8, "{left:?}");
            moments.insert(left);
        }
        assert!(moments.len() > 50, "{}", moments.len());
        assert_eq!(left("db", now - week, now, week), Duration::ZERO);
        assert!(left("db", now + DAY * 1000, now, week) <= week);
        assert_eq!(TrimSchedule::Never.period(), None);
    }
}
