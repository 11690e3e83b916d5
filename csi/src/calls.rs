//! Counting the calls that are under way, so that the driver ends when they have ended: a caller who keeps his connection
//! open, and answers nothing, holds nobody up.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

/// How long callers may take to get their last answers, and to close their connections themselves.
const LINGER: Duration = Duration::from_secs(1);

/// The calls that are under way, in all services.
#[derive(Clone, Debug)]
pub(crate) struct Calls(watch::Sender<usize>);

impl Calls {
    /// None.
    pub(crate) fn none() -> Self {
        Self(watch::Sender::new(0))
    }

    /// A service whose calls count.
    pub(crate) fn count<S>(&self, service: S) -> Counted<S> {
        Counted { service, calls: self.clone() }
    }

    /// Waits until no call has been under way for a moment.
    pub(crate) async fn ended(&self) {
        let mut under_way = self.0.subscribe();
        loop {
            // What is waited for lives in `self`.
            let _ = under_way.wait_for(|calls| *calls == 0).await;
            let next = under_way.wait_for(|calls| *calls > 0);
            if tokio::time::timeout(LINGER, next).await.is_err() {
                return;
            }
        }
    }

    fn begin(&self) -> Call {
        self.0.send_modify(|calls| *calls += 1);
        Call(self.0.clone())
    }
}

/// One call that is under way. It ends when this is dropped, also when its caller went away.
struct Call(watch::Sender<usize>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

/// A service whose calls count.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    service: S,
    calls: Calls,
}

impl<S> Service<http::Request<Body>> for Counted<S>
where
    S: Service<http::Request<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = BoxFuture<S::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let call = self.calls.begin();
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(call);
            answer
        })
    }
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_is_waited_for_and_what_follows_it_at_once_too() {
        let calls = Calls::none();
        let first = calls.begin();
        let waiting = calls.ended();
        tokio::pin!(waiting);
        let still = |wait: Duration| tokio::time::sleep(wait);
        tokio::select! {
            () = &mut waiting => panic!("a call is under way"),
            () = still(10 * LINGER) => {}
        }
        drop(first);
        tokio::select! {
            () = &mut waiting => panic!("its answer is on its way"),
            () = still(LINGER / 2) => {}
        }
        let second = calls.begin();
        tokio::select! {
            () = &mut waiting => panic!("another is under way"),
            () = still(10 * LINGER) => {}
        }
        drop(second);
        waiting.await;
    }
}
