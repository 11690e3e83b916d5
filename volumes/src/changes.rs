//! Telling those who follow a node's pools that there are others now.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lvm::dm::Waker;

/// How often the pools were replaced, and who is to be woken then.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    wakers: Vec<Waker>,
}

impl Changes {
    /// The present count, to be compared later.
    pub(crate) fn count(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Counts one up, and wakes everybody.
    pub(crate) fn announce(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        // Whoever goes on waiting registers again.
        for waker in state.wakers.drain(..) {
            waker.wake();
        }
        self.changed.notify_all();
    }

    /// Has a waiter on something else woken at the next change; at once if there was one since `seen`.
    pub(crate) fn wake(&self, waker: Waker, seen: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.count == seen {
            state.wakers.push(waker);
        } else {
            waker.wake();
        }
    }

    /// Waits until there was a change since `seen`, for at most `limit` if one is given.
    pub(crate) fn wait(&self, seen: u64, limit: Option<Duration>) {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.count == seen {
            let left = match end {
                None => Duration::from_secs(3600),
                Some(end) => end.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_ends_every_wait_and_one_that_was_missed_ends_it_at_once() {
        let changes = Changes::default();
        let seen = changes.count();
        changes.wait(seen, Some(Duration::from_millis(1)));
        assert_eq!(changes.count(), seen);
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4).map(|_| scope.spawn(|| changes.wait(seen, None))).collect();
            changes.announce();
            for waiter in waiters {
                waiter.join().unwrap();
            }
        });
        changes.wait(seen, None);
    }
}
