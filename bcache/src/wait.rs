//! Waiting for the kernel.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;

/// Asks again and again, up to `limit`, until there is an answer; `None` when there was none in time.
pub(crate) fn until<T>(
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
