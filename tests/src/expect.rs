//! What suites expect: refusals of a kind, and things that come true.

use std::fmt::Debug;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use devices::Failure;

/// The kind of a refusal, whose text is printed.
///
/// # Errors
///
/// If it was no refusal.
pub fn kind<T: Debug, K: Copy + Debug>(result: Result<T, Failure<K>>) -> Result<K> {
    match result {
        Ok(value) => bail!("it should have failed, and gave {value:?}"),
        Err(error) => {
            println!("{error}");
            Ok(error.kind())
        }
    }
}

/// Waits until something is so.
///
/// # Panics
///
/// If it is not within the time.
pub fn eventually(what: &str, within: Duration, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < within, "not within {within:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}
