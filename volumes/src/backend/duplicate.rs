//! Copying the content of one logical volume into another, in this process's own time.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use devices::Bytes;
use devices::erase::{Cancel, Progress};
use rustix::fs::OFlags;

use crate::{Error, Kind, SnapshotId};

/// What is copied at once.
const STEP: usize = 1 << 20;
/// What every disk is content with for direct input and output.
const ALIGN: usize = 4096;

/// The copies of snapshots that run in this process, shared by all pools of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Arc<Mutex<HashMap<SnapshotId, Running>>>);

/// One copy.
#[derive(Debug)]
struct Running {
    progress: Progress,
    cancel: Cancel,
    /// Whoever waits for its end.
    waiting: Vec<Waker>,
}

impl Copies {
    fn lock(&self) -> MutexGuard<'_, HashMap<SnapshotId, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a copy that begins; `None` when it runs already.
    pub(crate) fn begin(&self, id: &SnapshotId, total: Bytes) -> Option<Cancel> {
        let mut running = self.lock();
        if running.contains_key(id) {
            return None;
        }
        let cancel = Cancel::new();
        let progress = Progress { done: Bytes::ZERO, total };
        running.insert(id.clone(), Running { progress, cancel: cancel.clone(), waiting: Vec::new() });
        Some(cancel)
    }

    pub(crate) fn advance(&self, id: &SnapshotId, progress: Progress) {
        if let Some(running) = self.lock().get_mut(id) {
            running.progress = progress;
        }
    }

    pub(crate) fn end(&self, id: &SnapshotId) {
        let ended = self.lock().remove(id);
        ended.into_iter().flat_map(|running| running.waiting).for_each(Waker::wake);
    }

    /// Waits until no copy of that snapshot runs in this process, and tells whether one did.
    pub(crate) async fn ended(&self, id: &SnapshotId) -> bool {
        let mut ran = false;
        std::future::poll_fn(|context| match self.lock().get_mut(id) {
            None => Poll::Ready(ran),
            Some(running) => {
                ran = true;
                if !running.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    running.waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }

    /// How far a copy is, if it runs in this process.
    pub(crate) fn progress(&self, id: &SnapshotId) -> Option<Progress> {
        self.lock().get(id).map(|running| running.progress)
    }

    /// Stops a copy at its next step; it ends soon after.
    pub(crate) fn cancel(&self, id: &SnapshotId) {
        if let Some(running) = self.lock().get(id) {
            running.cancel.cancel();
        }
    }
}

/// Copies every byte of one device to another that is at least as large, and waits until it is on the disk.
///
/// # Errors
///
/// [`Kind::InUse`] when somebody else has the target; [`Kind::Unavailable`] when it was stopped; of the disks.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
    tried: &str,
) -> Result<(), Error> {
    let failed = |cause: io::Error| {
        let kind = match cause.kind() {
            io::ErrorKind::ResourceBusy => Kind::InUse,
            _ => Kind::Internal,
        };
        Error::new(kind, tried)
            .with_answer(format!("copy {} to {}: {cause}", from.display(), to.display()))
            .with_source(cause)
    };
    let direct = |flags: OFlags| i32::try_from((flags | OFlags::DIRECT).bits()).unwrap_or_default();
    let mut source =
        File::options().read(true).custom_flags(direct(OFlags::empty())).open(from).map_err(failed)?;
    let target = File::options().write(true).custom_flags(direct(OFlags::EXCL)).open(to).map_err(failed)?;
    let total = source.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut buffer = vec![0; STEP + ALIGN];
    let start = buffer.as_ptr().align_offset(ALIGN);
    let mut at = 0;
    while at < total {
        if cancel.is_cancelled() {
            return Err(Error::new(Kind::Unavailable, tried).with_answer("the copy was stopped"));
        }
        let length = usize::try_from((total - at).min(STEP as u64)).unwrap_or(STEP);
        let piece = &mut buffer[start..start + length];
        source.read_exact_at(piece, at).map_err(failed)?;
        target.write_all_at(piece, at).map_err(failed)?;
        at += length as u64;
        progress(Progress { done: Bytes::new(at), total: Bytes::new(total) });
    }
    target.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_copied_and_a_stop_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let content: Vec<u8> = (0..3 * STEP + ALIGN).map(|at| u8::try_from(at % 251).unwrap()).collect();
        std::fs::write(&from, &content).unwrap();
        std::fs::write(&to, vec![0xff; 4 * STEP]).unwrap();
        let mut last = None;
        match copy(&from, &to, &Cancel::new(), &mut |progress| last = Some(progress), "t") {
            // Filesystems in memory take no direct input and output.
            Err(error) if error.to_string().contains("Invalid argument") => return,
            copied => copied.unwrap(),
        }
        let copied = std::fs::read(&to).unwrap();
        assert_eq!(copied[..content.len()], content);
        assert!(copied[content.len()..].iter().all(|byte| *byte == 0xff));
        let total = Bytes::new(content.len() as u64);
        assert_eq!(last, Some(Progress { done: total, total }));
        let stopped = Cancel::new();
        stopped.cancel();
        let error = copy(&from, &to, &stopped, &mut |_| {}, "t").unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable);
    }

    #[test]
    fn a_copy_runs_once_and_is_known_while_it_runs() {
        let copies = Copies::default();
        let id: SnapshotId = "cut".parse().unwrap();
        let cancel = copies.begin(&id, Bytes::mib(4)).unwrap();
        assert!(copies.begin(&id, Bytes::mib(4)).is_none());
        copies.advance(&id, Progress { done: Bytes::mib(1), total: Bytes::mib(4) });
        assert_eq!(copies.progress(&id).unwrap().done, Bytes::mib(1));
        copies.clone().cancel(&id);
        assert!(cancel.is_cancelled());
        copies.end(&id);
        assert_eq!(copies.progress(&id), None);
    }

    #[test]
    fn whoever_waits_for_the_end_of_a_copy_is_woken() {
        struct Bell(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Bell {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let copies = Copies::default();
        let id: SnapshotId = "cut".parse().unwrap();
        let bell = Arc::new(Bell(false.into()));
        let waker = Waker::from(Arc::clone(&bell));
        let mut context = std::task::Context::from_waker(&waker);
        let none = std::pin::pin!(copies.ended(&id));
        assert_eq!(none.poll(&mut context), Poll::Ready(false));
        copies.begin(&id, Bytes::mib(1)).unwrap();
        let mut end = std::pin::pin!(copies.ended(&id));
        assert_eq!(end.as_mut().poll(&mut context), Poll::Pending);
        assert!(!bell.0.load(std::sync::atomic::Ordering::SeqCst));
        copies.end(&id);
        assert!(bell.0.load(std::sync::atomic::Ordering::SeqCst));
        assert_eq!(end.poll(&mut context), Poll::Ready(true));
    }
}
