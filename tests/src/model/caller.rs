//! One caller: what it asks for next, and whether the answer can be true.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use devices::Bytes;
use tonic::Code;

use super::belief::{Cut, Mode, Op, Rules, State, TARGETS, There, distinct};
use super::call::{Answer, Calls};
use super::killer::{Met, Turmoil};
use super::run::Uses;
use crate::power_cut::Random;

/// How long a call whose answers are lost is tried again.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// The steps of a volume that are told with a fault.
const HISTORY: usize = 30;

/// A volume of the run.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: String,
    pub(super) mode: Mode,
    pub(super) inner: Mutex<Known>,
}

/// What is known of a volume.
#[derive(Debug)]
pub(super) struct Known {
    /// What it may be; one state but after lost answers and calls at once.
    pub(super) beliefs: Vec<State>,
    history: Vec<String>,
}

impl Known {
    pub(super) fn note(&mut self, line: String) {
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(line);
    }

    /// The volume, if it is known what it is.
    pub(super) fn certain(&self) -> Option<&State> {
        match self.beliefs.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// All that callers share.
#[derive(Debug)]
pub(super) struct World {
    pub(super) rules: Rules,
    pub(super) directory: std::path::PathBuf,
    pub(super) volumes: Vec<Slot>,
    /// Snapshots: those with an even number of volumes with filesystems, the others of block devices.
    pub(super) snapshots: Vec<(String, Mutex<Option<Cut>>)>,
    pub(super) turmoil: Turmoil,
    /// Operations that are still to be begun in this round.
    pub(super) left: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicBool,
    pub(super) faults: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(
        rules: Rules,
        uses: Uses,
        directory: &std::path::Path,
        volumes: usize,
        snapshots: usize,
    ) -> Self {
        let mode = |at: usize| match uses {
            Uses::Filesystems => Mode::Filesystem,
            Uses::Both if at.is_multiple_of(2) => Mode::Filesystem,
            Uses::Both | Uses::Blocks => Mode::Block,
        };
        let slot = |at: usize| Slot {
            id: format!("vol-{at}"),
            mode: mode(at),
            inner: Mutex::new(Known { beliefs: vec![None], history: Vec::new() }),
        };
        Self {
            rules,
            directory: directory.to_owned(),
            volumes: (0..volumes).map(slot).collect(),
            snapshots: (0..snapshots).map(|at| (format!("cut-{at}"), Mutex::new(None))).collect(),
            turmoil: Turmoil::default(),
            left: AtomicU64::new(0),
            done: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            faults: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn fault(&self, text: String) {
        println!("FAULT: {text}");
        self.failed.store(true, Ordering::SeqCst);
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Takes one of the operations that are left.
    fn takes_one(&self) -> bool {
        let one = |left: u64| left.checked_sub(1);
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one).is_ok();
        taken && !self.failed.load(Ordering::SeqCst)
    }
}

/// One of the callers.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    pub(super) world: &'a World,
    /// For two calls at once.
    pub(super) calls: [Calls; 2],
    pub(super) random: Random,
}

impl Caller<'_> {
    /// Asks until the round is over or a fault was found.
    pub(super) fn work(&mut self) {
        while self.world.takes_one() {
            let at = self.below(self.world.volumes.len());
            let slot = &self.world.volumes[at];
            match slot.inner.try_lock() {
                Ok(mut known) => self.turn(slot, &mut known),
                Err(_) => self.look(slot),
            }
            self.world.done.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.random.below(limit as u64)).unwrap_or_default()
    }

    /// A look at a volume that another caller works with: what it sees may be before or after that, and nothing else.
    fn look(&mut self, slot: &Slot) {
        let since = self.world.turmoil.now();
        let answer = self.calls[0].perform(&slot.id, slot.mode, &Op::Validate);
        let met = self.world.turmoil.since(since);
        if ![Code::Ok, Code::NotFound].contains(&answer.code) && !is_lost(&answer, met) {
            self.world.fault(format!("{}: a look during other work: {answer:?}", slot.id));
        }
    }

    fn turn(&mut self, slot: &Slot, known: &mut Known) {
        let Some(state) = known.certain().cloned() else {
            // Find out first what it is: whether it is there, else by an act that ends alike whatever it was.
            let acts = [Op::List, Op::Unpublish(0), Op::Unpublish(1), Op::Unstage, Op::Stage, Op::Delete];
            let op = acts[self.below(acts.len())].clone();
            return self.settle(slot, known, op);
        };
        match (&state, self.random.below(100)) {
            (_, 0..12) => {
                let (one, other) = (self.any(), self.any());
                self.both(slot, known, &one, &other);
            }
            (_, 12..24) => {
                let op = self.any();
                self.settle(slot, known, op);
            }
            (None, 24..60) => self.make_from(slot, known),
            (None, _) => {
                let op = self.create();
                self.settle(slot, known, op);
            }
            (Some(there), 24..44) if there.is_published() => self.use_it(slot, known, there),
            (Some(_), 44..56) => self.cut(slot, known, &state),
            (Some(_), 56..60) => self.uncut(),
            (Some(there), _) => {
                let op = self.sensible(slot.mode, there);
                self.settle(slot, known, op);
            }
        }
    }

    fn create(&mut self) -> Op {
        // Not all sizes are whole extents.
        let size = Bytes::new((16 << 20) + self.random.below(16) * (1 << 20) + self.random.below(2) * 513);
        Op::Create { size, from: None }
    }

    /// Any call at all, sensible or not.
    fn any(&mut self) -> Op {
        let at = self.below(TARGETS);
        match self.random.below(14) {
            0 | 1 => self.create(),
            2 => Op::Create { size: self.world.rules.too_much, from: None },
            3 => Op::Grow { size: self.world.rules.too_much },
            4 => Op::Grow { size: Bytes::mib(16 + self.random.below(32)) },
            5 | 6 => Op::Delete,
            7 => Op::Stage,
            8 => Op::Unstage,
            9 => Op::Publish(at),
            10 => Op::Unpublish(at),
            11 => Op::Expand(at),
            12 => Op::Stats(at),
            _ => Op::List,
        }
    }

    /// A call that most likely brings a volume on in its life.
    fn sensible(&mut self, mode: Mode, there: &There) -> Op {
        let at = self.below(TARGETS);
        match self.random.below(10) {
            0..2 => Op::Grow {
                size: there.size.checked_add(Bytes::mib(1 + self.random.below(8))).unwrap_or(there.size),
            },
            2 if there.is_published() => Op::Expand(at),
            3 if there.is_published() => Op::Stats(at),
            4 => Op::Validate,
            _ if there.is_published() => Op::Unpublish(at),
            _ if there.staged && self.random.below(2) == 0 => Op::Publish(at),
            _ if there.staged => Op::Unstage,
            _ if self.random.below(3) > 0 => Op::Stage,
            _ if mode == Mode::Block => Op::Publish(at),
            _ => Op::Delete,
        }
    }

    /// Makes a call until its answer is known, as a container orchestrator does: the same one again, or the one that
    /// undoes it.
    pub(super) fn settle(&mut self, slot: &Slot, known: &mut Known, op: Op) {
        let start = Instant::now();
        let mut op = op;
        loop {
            let since = self.world.turmoil.now();
            let answer = self.calls[0].perform(&slot.id, slot.mode, &op);
            let met = self.world.turmoil.since(since);
            known.note(format!("{op:?}: {answer:?} ({met:?})"));
            if is_lost(&answer, met) && start.elapsed() < PATIENCE {
                self.world.lost.fetch_add(1, Ordering::SeqCst);
                known.beliefs = self.after(slot.mode, &known.beliefs, &op, &Outcome::Lost);
                if self.random.below(3) == 0 {
                    op = undo(&op);
                }
                sleep(Duration::from_millis(50));
                continue;
            }
            return self.judge(slot, known, &[(&op, &answer)]);
        }
    }

    /// Two calls on one volume at once: each order must explain the answers, and one may be told to come back.
    fn both(&mut self, slot: &Slot, known: &mut Known, one: &Op, other: &Op) {
        let since = self.world.turmoil.now();
        let [first, second] = &self.calls;
        let (answer, beside) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| second.perform(&slot.id, slot.mode, other));
            (first.perform(&slot.id, slot.mode, one), beside.join())
        });
        let Ok(beside) = beside else { return self.world.fault(format!("{}: a call panicked", slot.id)) };
        let met = self.world.turmoil.since(since);
        known.note(format!("at once ({met:?}): {one:?}: {answer:?}; {other:?}: {beside:?}"));
        let lost = [&answer, &beside].map(|answer| is_lost(answer, met));
        if lost == [false, false] {
            return self.judge(slot, known, &[(one, &answer), (other, &beside)]);
        }
        let outcome = |lost: bool, answer: &Answer| match lost {
            true => Outcome::Lost,
            false => Outcome::of(answer),
        };
        let (was, were) = (outcome(lost[0], &answer), outcome(lost[1], &beside));
        self.world.lost.fetch_add(1, Ordering::SeqCst);
        self.believe(slot, known, &[(one, &was), (other, &were)]);
        for (lost, op) in lost.into_iter().zip([one, other]) {
            if lost {
                self.settle(slot, known, op.clone());
            }
        }
    }

    fn judge(&mut self, slot: &Slot, known: &mut Known, answered: &[(&Op, &Answer)]) {
        let outcomes: Vec<Outcome> = answered.iter().map(|(_, answer)| Outcome::of(answer)).collect();
        let refused = outcomes.iter().filter(|outcome| **outcome == Outcome::Busy).count();
        self.world.refused.fetch_add(refused as u64, Ordering::SeqCst);
        if refused == answered.len() {
            return self.world.fault(told(
                slot,
                known,
                "nobody else was at work, and the call was refused as busy",
            ));
        }
        let of: Vec<(&Op, &Outcome)> = answered.iter().map(|(op, _)| *op).zip(&outcomes).collect();
        self.believe(slot, known, &of);
    }

    /// Keeps the states that explain what came back.
    fn believe(&self, slot: &Slot, known: &mut Known, came: &[(&Op, &Outcome)]) {
        let in_turn = |order: &mut dyn Iterator<Item = &(&Op, &Outcome)>| {
            order.fold(known.beliefs.clone(), |states, (op, outcome)| {
                self.after(slot.mode, &states, op, outcome)
            })
        };
        let mut states = in_turn(&mut came.iter());
        states.extend(in_turn(&mut came.iter().rev()));
        let states = distinct(states);
        if states.is_empty() {
            let expected: Vec<_> = known
                .beliefs
                .iter()
                .map(|state| {
                    came.iter()
                        .map(|(op, _)| self.world.rules.step(slot.mode, state, op).0)
                        .collect::<Vec<_>>()
                })
                .collect();
            let text = format!("the answer fits nothing that the volume can be; expected {expected:?}");
            return self.world.fault(told(slot, known, &text));
        }
        known.beliefs = states;
    }

    fn after(&self, mode: Mode, states: &[State], op: &Op, outcome: &Outcome) -> Vec<State> {
        let rules = self.world.rules;
        let of = |state: &State| match outcome {
            Outcome::Busy => vec![state.clone()],
            Outcome::Lost => rules.lost(mode, state, op),
            Outcome::Answer { code, .. } if rules.may_refuse(state, op, *code) => vec![state.clone()],
            Outcome::Answer { code, size, listed } => {
                let (expected, next) = rules.step(mode, state, op);
                let fits = expected.code == *code
                    && expected.size.is_none_or(|expected| *size == Some(expected))
                    && listed.is_none_or(|listed| listed == state.is_some());
                if fits { vec![next] } else { Vec::new() }
            }
        };
        distinct(states.iter().flat_map(of).collect())
    }
}

/// What a call's answer means for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was not let in.
    Busy,
    /// Whether it had an effect is not known.
    Lost,
    Answer {
        code: Code,
        size: Option<Bytes>,
        listed: Option<bool>,
    },
}

impl Outcome {
    fn of(answer: &Answer) -> Self {
        match answer.code {
            Code::Aborted => Self::Busy,
            code => Self::Answer { code, size: answer.size, listed: answer.listed },
        }
    }
}

/// Whether an answer says nothing about the call's effect, and a kill excuses that.
pub(super) fn is_lost(answer: &Answer, met: Met) -> bool {
    match (met, answer.code) {
        (Met::Nothing, _) => false,
        (_, Code::Unavailable) => true,
        (Met::DeadWorker, _) => false,
        // The connection broke.
        (Met::DeadDriver, Code::Unknown | Code::Cancelled) => true,
        (Met::DeadDriver, Code::Internal) => answer.message.contains("h2 protocol"),
        (Met::DeadDriver, _) => false,
    }
}

/// What an orchestrator calls that gives a wish up.
fn undo(op: &Op) -> Op {
    match op {
        Op::Create { .. } => Op::Delete,
        Op::Stage => Op::Unstage,
        Op::Publish(at) => Op::Unpublish(*at),
        other => other.clone(),
    }
}

pub(super) fn told(slot: &Slot, known: &Known, what: &str) -> String {
    let Slot { id, mode, .. } = slot;
    format!("{id} ({mode:?}): {what}\n  believed: {:?}\n  {}", known.beliefs, known.history.join("\n  "))
}
