//! Telling a person at a terminal how far long work has come.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How often the line is written anew.
const PERIOD: Duration = Duration::from_millis(250);

/// Does `work` on a thread of its own, and meanwhile shows what `tell` says, when a person looks.
pub(crate) fn during<T: Send>(work: impl FnOnce() -> T + Send, tell: impl Fn() -> Option<String>) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            show(tell().as_deref());
            std::thread::park_timeout(PERIOD);
        }
        show(None);
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Asks `left` again and again until it says that nothing is left, and shows what it says.
pub(crate) fn until_done<E>(mut left: impl FnMut() -> Result<Option<String>, E>) -> Result<(), E> {
    let terminal = std::io::stderr().is_terminal();
    while let Some(text) = left()? {
        if terminal {
            show(Some(&text));
        }
        std::thread::sleep(PERIOD);
    }
    if terminal {
        show(None);
    }
    Ok(())
}

/// Replaces the terminal's present line; nothing clears it.
fn show(text: Option<&str>) {
    // Progress that cannot be shown is no reason to stop the work.
    let _ = write!(std::io::stderr().lock(), "\r\x1b[K{}", text.unwrap_or_default());
}
