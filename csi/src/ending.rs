//! Telling calls that only wait that the driver ends.

use tokio::sync::watch;

/// What tells.
#[derive(Debug)]
pub(crate) struct End(watch::Sender<bool>);

/// What is told.
#[derive(Clone, Debug)]
pub(crate) struct Ending(watch::Receiver<bool>);

/// A driver that serves.
pub(crate) fn serving() -> (End, Ending) {
    let (tell, told) = watch::channel(false);
    (End(tell), Ending(told))
}

impl End {
    /// From now on the driver ends.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Ending {
    /// Waits until the driver ends.
    pub(crate) async fn begun(&self) {
        // Whoever could tell has gone: that is the same.
        let _ = self.0.clone().wait_for(|ends| *ends).await;
    }
}
