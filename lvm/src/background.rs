//! Operations for programs that do not block: each on a thread of its own, with its result through one channel.

use tokio::sync::oneshot;

use crate::{Effect, Error, Kind, Lvm};

impl Lvm {
    /// Runs operations on a thread of their own and waits for the result without blocking.
    ///
    /// Dropping the future does not stop them: what has begun is carried through, as the metadata need it.
    ///
    /// # Errors
    ///
    /// Those of `act`; [`Kind::Io`] if no thread can be started; [`Kind::Crashed`] if `act` panics.
    ///
    /// ```no_run
    /// use devices::Bytes;
    /// use lvm::Lvm;
    /// use lvm::ops::{NewVolume, SizeRange};
    ///
    /// # async fn make(lvm: &Lvm) -> Result<(), Box<dyn std::error::Error>> {
    /// let new = NewVolume::new("db".parse()?, SizeRange::at_least(Bytes::gib(1)));
    /// let name = "data".parse()?;
    /// let volume = lvm.in_background(move |lvm| lvm.group(&name)?.create_volume(&new)).await?;
    /// println!("{}", volume.get().device.display());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_background<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        const TRIED: &str = "run an operation in the background";
        let (sender, receiver) = oneshot::channel();
        let lvm = self.clone();
        std::thread::Builder::new()
            .name("lvm-operation".to_owned())
            .spawn(move || {
                // The future may have been dropped; the operation was carried through all the same.
                let _ = sender.send(act(&lvm));
            })
            .map_err(|cause| Error::new(Kind::Io, TRIED).with_answer(cause.to_string()).with_source(cause))?;
        receiver.await.unwrap_or_else(|_| {
            Err(Error::new(Kind::Crashed, TRIED)
                .with_effect(Effect::Unknown)
                .with_answer("the operation panicked"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;
    use crate::metadata::View;
    use crate::run::{Reply, Request, Runner};
    use crate::{MetadataSource, Settings};

    #[derive(Debug)]
    struct Nothing;

    impl Runner for Nothing {
        fn run(&self, request: &Request) -> Result<Reply, Error> {
            Err(Error::new(Kind::Unsupported, &request.tried))
        }
    }

    impl MetadataSource for Nothing {
        fn view(&self) -> Result<Arc<View>, Error> {
            Ok(Arc::new(View::default()))
        }
    }

    fn handle() -> Lvm {
        Lvm::with_parts(Arc::new(Nothing), Arc::new(Nothing), Settings::default())
    }

    /// Polls until there is a result.
    fn wait<T>(future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn results_and_panics_arrive() {
        let lvm = handle();
        assert_eq!(wait(lvm.in_background(|lvm| Ok(lvm.groups()?.len()))).unwrap(), 0);
        let panicked = wait(lvm.in_background(|_| -> Result<(), Error> { panic!("on purpose") }));
        assert_eq!(panicked.unwrap_err().effect(), Effect::Unknown);
    }

    #[test]
    fn what_nobody_waits_for_is_carried_through() {
        let (sender, receiver) = mpsc::channel();
        let lvm = handle();
        {
            let mut future = pin!(lvm.in_background(move |_| {
                std::thread::sleep(Duration::from_millis(20));
                sender.send(()).map_err(|_| Error::new(Kind::Other, "tell"))
            }));
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        receiver.recv_timeout(Duration::from_secs(5)).unwrap();
    }
}
