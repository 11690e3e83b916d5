//! Calls of this library from asynchronous programs (feature `tokio`).
//!
//! Everything here blocks, and a change that has begun must come to its end whoever still waits for it. So a call
//! from an asynchronous program gets a thread of its own, and the future only waits for its word: dropping the
//! future ends the wait, never the call.

use std::thread;

use tokio::sync::oneshot;

use crate::{Effect, Error, Kind};

/// Runs a blocking call on a thread of its own and waits for its result. `tried` says what is tried, in the
/// infinitive, for error texts.
///
/// The call begins at once, before the future is first polled, and goes on to its end when the future is dropped.
///
/// # Errors
///
/// What the call returns; [`Kind::Io`] when no thread can be started, with nothing done; [`Kind::Other`] with
/// [`Effect::Unknown`] when the call panicked.
///
/// # Examples
///
/// ```no_run
/// # async fn example(lvm: lvm::Lvm, new: lvm::ops::NewGroup) -> Result<(), lvm::Error> {
/// let made = lvm::nonblocking::call("create a group", move || lvm.create_group(&new)).await?;
/// # let _ = made;
/// # Ok(())
/// # }
/// ```
pub fn call<T, F>(tried: &str, call: F) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let started = thread::Builder::new().name("lvm-call".to_owned()).spawn(move || {
        // Nobody listening is no error: the call is done all the same.
        let _ = sender.send(call());
    });
    let tried = tried.to_owned();
    async move {
        if let Err(error) = started {
            return Err(Error::new(Kind::Io, tried).with_answer(error.to_string()).with_source(error));
        }
        receiver.await.unwrap_or_else(|_| {
            Err(Error::new(Kind::Other, tried)
                .with_effect(Effect::Unknown)
                .with_answer("the call panicked")
                .with_advice("look at the program's own log"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_result_comes_back_and_so_does_an_error() {
        assert_eq!(block_on(call("count", || Ok(7))).unwrap(), 7);
        let refused = || Err::<(), _>(Error::new(Kind::Busy, "count"));
        assert_eq!(block_on(call("count", refused)).unwrap_err().kind(), Kind::Busy);
    }

    #[test]
    fn a_dropped_future_leaves_the_call_to_its_end() {
        let (begin, begun) = mpsc::channel::<()>();
        let (end, ended) = mpsc::channel();
        let future = call("wait", move || {
            let _ = begun.recv();
            let _ = end.send("done");
            Ok(())
        });
        drop(future);
        begin.send(()).unwrap();
        assert_eq!(ended.recv_timeout(Duration::from_secs(10)).unwrap(), "done");
    }

    #[test]
    fn a_panic_is_an_error_with_unknown_effect() {
        let error = block_on(call::<(), _>("fail", || panic!("on purpose"))).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (Kind::Other, Effect::Unknown));
    }
}
