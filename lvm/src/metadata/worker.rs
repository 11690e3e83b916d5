//! The thread that reads one device.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use super::committed::Texts;
use super::reader::{Cost, Options};
use super::scan::{Found, Scan, Scanner};
use super::source::Facts;
use super::{Buffer, Device};
use crate::{Error, Kind};

/// The thread of one device, seen from outside.
#[derive(Debug)]
pub(super) struct Worker {
    path: PathBuf,
    jobs: Sender<Job>,
    answers: Receiver<Answer>,
    /// A read is outstanding.
    busy: bool,
    found: Found,
    /// An answer that came after its deadline has changed what was found.
    changed_late: bool,
    late_cost: Cost,
}

struct Job {
    texts: Arc<Texts>,
    options: Options,
}

struct Answer {
    /// `None`: as before.
    found: Option<Found>,
    /// What this read alone has cost.
    cost: Cost,
}

impl Worker {
    pub(super) fn start(path: PathBuf) -> Self {
        let (jobs, inbox) = channel();
        let (outbox, answers) = channel();
        let device = path.clone();
        // Where no thread can be had, the channels close, which `wait` reports.
        let _ = thread::Builder::new()
            .name("lvm-metadata".to_owned())
            .spawn(move || serve(&device, &inbox, &outbox));
        let found = failure(&path, "it has not been read yet");
        Self { path, jobs, answers, busy: false, found, changed_late: false, late_cost: Cost::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How the last read went.
    pub(super) fn found(&self) -> &Found {
        &self.found
    }

    /// Begins a read, unless an earlier one has not come back.
    pub(super) fn ask(&mut self, texts: &Arc<Texts>, options: &Options) {
        if self.busy {
            // What comes late counts all the same: the thread goes on from it, and answers next what differs from it.
            let Ok(late) = self.answers.try_recv() else { return };
            let mut cost = self.late_cost;
            self.changed_late |= self.accept(late, &mut cost);
            self.late_cost = cost;
        }
        let job = Job { texts: Arc::clone(texts), options: options.clone() };
        // A failure shows when the answer is waited for.
        let _ = self.jobs.send(job);
        self.busy = true;
    }

    /// Waits for the answer; whether it differs from the one before.
    pub(super) fn wait(&mut self, deadline: Instant, cost: &mut Cost) -> bool {
        cost.add(&std::mem::take(&mut self.late_cost));
        let late = std::mem::take(&mut self.changed_late);
        let answer = self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        let changed = match answer {
            Ok(answer) => self.accept(answer, cost),
            Err(RecvTimeoutError::Timeout) => {
                self.keep(failure(&self.path, "it has not answered; it is read again once it has"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.keep(failure(&self.path, "its reading thread has ended"))
            }
        };
        late || changed
    }

    fn accept(&mut self, answer: Answer, cost: &mut Cost) -> bool {
        self.busy = false;
        cost.add(&answer.cost);
        answer.found.is_some_and(|found| self.keep(found))
    }

    fn keep(&mut self, found: Found) -> bool {
        let changed = !found.is_same_failure(&self.found);
        self.found = found;
        changed
    }
}

fn failure(path: &Path, answer: &str) -> Found {
    let tried = format!("read the PV label of {}", path.display());
    Found::Unreadable(Arc::new(Error::new(Kind::Io, tried).with_answer(answer)))
}

/// Reads the device whenever asked, until nobody can ask any more.
fn serve(path: &Path, jobs: &Receiver<Job>, answers: &Sender<Answer>) {
    let mut before: Option<(Arc<Scan>, Facts)> = None;
    let mut buffer = Buffer::default();
    while let Ok(job) = jobs.recv() {
        let (reads, bytes) = buffer.cost();
        let known = before.as_ref().map(|(_, facts)| *facts);
        let found = match look(path, before.as_ref(), &job, &mut buffer) {
            Ok(Look::Same) => None,
            Ok(Look::Scan(scan, facts)) => {
                let scan = Arc::new(*scan);
                before = Some((Arc::clone(&scan), facts));
                Some(Found::Scan(scan))
            }
            Ok(Look::Suspended) => {
                before = None;
                Some(Found::Suspended)
            }
            Err(error) => {
                before = None;
                Some(Found::unreadable(path, &error))
            }
        };
        buffer.shrink();
        let (all_reads, all_bytes) = buffer.cost();
        let reads = all_reads - reads;
        let cost = Cost {
            reads,
            bytes: all_bytes - bytes,
            system_calls: Device::system_calls(known) + reads,
            texts: 0,
        };
        if answers.send(Answer { found, cost }).is_err() {
            return;
        }
    }
}

enum Look {
    Same,
    Scan(Box<Scan>, Facts),
    Suspended,
}

fn look(
    path: &Path,
    before: Option<&(Arc<Scan>, Facts)>,
    job: &Job,
    buffer: &mut Buffer,
) -> io::Result<Look> {
    let known = before.map(|(_, facts)| *facts);
    let Some(device) = Device::open_again(path, known)? else { return Ok(Look::Suspended) };
    let number = device.number();
    // Another device behind the same path is another device, however alike.
    let before = before.map(|(scan, _)| &**scan).filter(|before| before.number == number);
    let mut scanner = Scanner { source: &device, buffer, texts: &job.texts, options: &job.options };
    let scan = scanner.scan(number, before)?;
    Ok(scan.map_or(Look::Same, |scan| Look::Scan(Box::new(scan), device.facts())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A worker whose thread is played by the test.
    fn played() -> (Worker, Receiver<Job>, Sender<Answer>) {
        let (jobs, inbox) = channel();
        let (outbox, answers) = channel();
        let path = PathBuf::from("/dev/slow");
        let found = failure(&path, "it has not been read yet");
        let (changed_late, late_cost) = (false, Cost::default());
        (Worker { path, jobs, answers, busy: false, found, changed_late, late_cost }, inbox, outbox)
    }

    fn scan() -> Found {
        let (mut buffer, texts, options) = (Buffer::default(), Texts::default(), Options::default());
        let source = crate::metadata::Image(&[0; 8192]);
        let mut scanner = Scanner { source: &source, buffer: &mut buffer, texts: &texts, options: &options };
        Found::Scan(Arc::new(scanner.scan(None, None).unwrap().unwrap()))
    }

    #[test]
    fn a_device_that_answered_too_late_is_known_from_then_on() {
        let (mut worker, jobs, answers) = played();
        let (texts, options, mut cost) = (Arc::new(Texts::default()), Options::default(), Cost::default());
        let at_once = Instant::now();
        worker.ask(&texts, &options);
        assert!(worker.wait(at_once, &mut cost));
        assert!(matches!(worker.found(), Found::Unreadable(_)));
        // Nothing is asked while the first read has not come back, and nothing has changed.
        worker.ask(&texts, &options);
        assert!(!worker.wait(at_once, &mut cost));
        assert_eq!(jobs.try_iter().count(), 1);

        let late = Cost { reads: 3, ..Cost::default() };
        answers.send(Answer { found: Some(scan()), cost: late }).unwrap();
        worker.ask(&texts, &options);
        assert_eq!(jobs.try_iter().count(), 1);
        answers.send(Answer { found: None, cost: Cost::default() }).unwrap();
        assert!(worker.wait(at_once + Duration::from_secs(60), &mut cost));
        assert!(matches!(worker.found(), Found::Scan(_)));
        assert_eq!(cost.reads, 3);
    }
}
