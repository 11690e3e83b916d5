//! Whether anybody has a volume open, apart from udev's own look at it.

use std::thread;
use std::time::{Duration, Instant};

use super::seen::Seen;
use crate::dm::Dm;
use crate::metadata::Lv;
use crate::{Error, Kind};

/// How long a volume may stay open before it counts as in use. After every change of a device udev opens it for a
/// moment to see what is on it, and the moment is long on a loaded machine. LVM too tries for five seconds before it
/// gives up taking a device away.
const PATIENCE: Duration = Duration::from_secs(5);

const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Seen {
    /// Returns once none of the volumes is open.
    ///
    /// # Errors
    ///
    /// [`Kind::InUse`] if one stays open for all of [`PATIENCE`].
    pub(super) fn wait_until_closed(&self, lvs: &[&Lv], tried: &str) -> Result<(), Error> {
        let dm = Dm::open()?;
        let deadline = Instant::now() + PATIENCE;
        while let Some((lv, count)) = self.first_open(&dm, lvs)? {
            if Instant::now() >= deadline {
                let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
                return Err(Error::new(Kind::InUse, tried)
                    .with_answer(format!("volume {} is open {times}", lv.name))
                    .with_advice("unmount it, or end what uses it"));
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn first_open<'a>(&self, dm: &Dm, lvs: &[&'a Lv]) -> Result<Option<(&'a Lv, u32)>, Error> {
        for lv in lvs {
            if let Some(count) = dm.open_count(&self.vg().uuid, &lv.uuid)?.filter(|count| *count > 0) {
                return Ok(Some((lv, count)));
            }
        }
        Ok(None)
    }
}
