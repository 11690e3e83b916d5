//! One held state of a pool's metadata for all who read it at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use lvm::Uuid;
use lvm::dm::Dm;
use lvm::thin_meta::LivePool;

use crate::{Error, Kind};

/// How old a held state may be for another reader to join: as long as many read, the pool still comes to let go of it.
const JOIN: Duration = Duration::from_secs(2);
/// How long is waited for others who hold the metadata of the pool.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks whether they still do. Whoever else waits for the pool looks as often.
const PAUSE: Duration = Duration::from_millis(50);

/// The held states of this process's pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds(Arc<Mutex<BTreeMap<Uuid, Slot>>>);

/// Of one pool, as long as somebody reads.
type Slot = Arc<Mutex<Weak<Hold>>>;

/// A state that the pool holds until the last of its readers lets it go.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) live: LivePool<'static>,
    since: Instant,
}

impl Holds {
    /// The state that somebody reads already, or one of now.
    ///
    /// # Errors
    ///
    /// [`Kind::Unavailable`] when the pool is not active, or others do not let it go.
    pub(crate) fn of(&self, vg: &Uuid, pool: &Uuid, tried: &str) -> Result<Arc<Hold>, Error> {
        let slot = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(*pool).or_default())
        };
        let start = Instant::now();
        loop {
            match joined_or_new(&slot, vg, pool) {
                Ok(Some(hold)) => return Ok(hold),
                Ok(None) if start.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Ok(None) => {
                    return Err(Error::new(Kind::Unavailable, tried)
                        .with_answer("another program reads the metadata of the pool")
                        .with_advice("try again; gabion doctor says what to do if none does"));
                }
                Err(error) if error.kind() == lvm::Kind::NotFound => {
                    return Err(Error::new(Kind::Unavailable, tried)
                        .with_answer("its thin pool is not active")
                        .with_source(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// `None` while somebody has the metadata whom this reader cannot join.
fn joined_or_new(slot: &Slot, vg: &Uuid, pool: &Uuid) -> Result<Option<Arc<Hold>>, lvm::Error> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hold) = slot.upgrade() {
        return Ok((hold.since.elapsed() < JOIN).then_some(hold));
    }
    match LivePool::hold(dm()?, vg, pool) {
        Ok(live) => {
            let hold = Arc::new(Hold { live, since: Instant::now() });
            *slot = Arc::downgrade(&hold);
            Ok(Some(hold))
        }
        Err(error) if error.kind() == lvm::Kind::Busy => Ok(None),
        Err(error) => Err(error),
    }
}

/// The handle of this process, which held states need as long as they live.
fn dm() -> Result<&'static Dm, lvm::Error> {
    static DM: OnceLock<Dm> = OnceLock::new();
    match DM.get() {
        Some(dm) => Ok(dm),
        None => {
            let dm = Dm::open()?;
            Ok(DM.get_or_init(|| dm))
        }
    }
}
