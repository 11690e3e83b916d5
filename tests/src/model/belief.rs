//! What a volume may be, and what each call must answer then.

use devices::Bytes;
use tonic::Code;

/// Places where a volume is shown, besides where it is staged.
pub(super) const TARGETS: usize = 2;

/// How a volume is used; which one follows from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Filesystem,
    Block,
}

/// What is on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    New,
    Formatting,
    Used,
}

/// A content to make a volume of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The source as the caller names it.
    pub(super) source: Source,
    /// What it is; `None` when there is no such thing.
    pub(super) there: Option<Cut>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Snapshot(String),
    Volume(String),
}

/// A volume's size and content at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The volume that it was cut from.
    pub(super) source: String,
    pub(super) size: Bytes,
    pub(super) content: Content,
    /// Which of the test's contents is on it; nothing was written where there is none.
    pub(super) data: Option<u64>,
}

/// A volume that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct There {
    pub(super) size: Bytes,
    pub(super) source: Option<Source>,
    pub(super) content: Content,
    pub(super) data: Option<u64>,
    pub(super) staged: bool,
    pub(super) published: [bool; TARGETS],
}

/// What a volume may be: nothing, or a volume.
pub(super) type State = Option<There>;

/// A call on one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Create {
        size: Bytes,
        from: Option<Origin>,
    },
    Delete,
    Grow {
        size: Bytes,
    },
    Stage,
    Unstage,
    Publish(usize),
    Unpublish(usize),
    /// NodeExpandVolume where it is published.
    Expand(usize),
    Stats(usize),
    Validate,
    /// ListVolumes, of which only this volume is looked at.
    List,
}

/// What a call must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) code: Code,
    /// The size that it must tell, where it tells one.
    pub(super) size: Option<Bytes>,
}

const OK: Expected = Expected { code: Code::Ok, size: None };

const fn refused(code: Code) -> Expected {
    Expected { code, size: None }
}

const fn sized(size: Bytes) -> Expected {
    Expected { code: Code::Ok, size: Some(size) }
}

/// What the pool of a run can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// What sizes are rounded up to.
    pub(super) unit: Bytes,
    /// More than the pool has.
    pub(super) too_much: Bytes,
    pub(super) copies: bool,
    /// Whether a volume may be unable to grow because another one follows it on its disk.
    pub(super) crowded: bool,
}

impl Rules {
    /// Whether a call may be refused although the model expects it to be done.
    pub(super) fn may_refuse(self, state: &State, op: &Op, code: Code) -> bool {
        let grows = matches!((op, state), (Op::Grow { size }, Some(there)) if *size > there.size);
        self.crowded && grows && code == Code::OutOfRange
    }

    fn rounded(self, size: Bytes) -> Bytes {
        size.round_up(self.unit).unwrap_or(size)
    }

    /// What a call on a volume in this state must answer, and what the volume is then.
    pub(super) fn step(self, mode: Mode, state: &State, op: &Op) -> (Expected, State) {
        let same = |expected| (expected, state.clone());
        let Some(there) = state else {
            return match op {
                Op::Create { size, from } => self.create(*size, from.as_ref()),
                Op::Delete | Op::Unstage | Op::Unpublish(_) => (OK, None),
                // Nothing is listed.
                Op::List => (OK, None),
                _ => (refused(Code::NotFound), None),
            };
        };
        let with = |change: &dyn Fn(&mut There)| {
            let mut changed = there.clone();
            change(&mut changed);
            Some(changed)
        };
        match op {
            Op::Create { size, from } => {
                let source = from.as_ref().map(|from| &from.source);
                if there.size >= *size && there.source.as_ref() == source {
                    same(sized(there.size))
                } else {
                    same(refused(Code::AlreadyExists))
                }
            }
            Op::Delete if there.in_use(mode) => same(refused(Code::FailedPrecondition)),
            Op::Delete => (OK, None),
            Op::Grow { size } if *size <= there.size => same(sized(there.size)),
            Op::Grow { size } if *size >= self.too_much => same(refused(Code::OutOfRange)),
            Op::Grow { size } => {
                let size = self.rounded(*size);
                (sized(size), with(&|there| there.size = size))
            }
            Op::Stage => (
                OK,
                with(&|there| {
                    there.staged = true;
                    there.content = Content::Used;
                }),
            ),
            Op::Unstage => (OK, with(&|there| there.staged = false)),
            Op::Publish(_) if !there.can_be_published(mode) => same(refused(Code::FailedPrecondition)),
            Op::Publish(at) => (OK, with(&|there| there.published[*at] = true)),
            Op::Unpublish(at) => (OK, with(&|there| there.published[*at] = false)),
            Op::Expand(at) | Op::Stats(at) if !there.published[*at] => same(refused(Code::NotFound)),
            Op::Expand(_) => same(sized(there.size)),
            Op::Stats(_) if mode == Mode::Block => same(sized(there.size)),
            Op::Stats(_) | Op::Validate => same(OK),
            Op::List => same(sized(there.size)),
        }
    }

    fn create(self, size: Bytes, from: Option<&Origin>) -> (Expected, State) {
        let mut made = There {
            size: self.rounded(size),
            source: None,
            content: Content::New,
            data: None,
            staged: false,
            published: [false; TARGETS],
        };
        if let Some(origin) = from {
            let Some(cut) = &origin.there else { return (refused(Code::NotFound), None) };
            if size < cut.size {
                return (refused(Code::OutOfRange), None);
            }
            if !self.copies {
                return (refused(Code::InvalidArgument), None);
            }
            made.source = Some(origin.source.clone());
            (made.content, made.data) = (cut.content, cut.data);
        }
        if size >= self.too_much {
            return (refused(Code::ResourceExhausted), None);
        }
        (sized(made.size), Some(made))
    }

    /// Everything that a volume may be after a call whose answer was lost.
    pub(super) fn lost(self, mode: Mode, state: &State, op: &Op) -> Vec<State> {
        let mut possible = vec![state.clone()];
        let (expected, next) = self.step(mode, state, op);
        if expected.code == Code::Ok && next != *state {
            possible.push(next);
        }
        if let (Op::Stage, Mode::Filesystem, Some(there)) = (op, mode, state)
            && there.content != Content::Used
        {
            // The filesystem may be half made, or whole and not mounted.
            for content in [Content::Formatting, Content::Used] {
                possible.push(Some(There { content, ..there.clone() }));
            }
        } else if let (Op::Stage, Some(there)) = (op, state) {
            possible.push(Some(There { content: Content::Used, ..there.clone() }));
        }
        possible.dedup();
        possible
    }
}

impl There {
    pub(super) fn in_use(&self, mode: Mode) -> bool {
        self.is_published() || (mode == Mode::Filesystem && self.staged)
    }

    pub(super) fn is_published(&self) -> bool {
        self.published.contains(&true)
    }

    fn can_be_published(&self, mode: Mode) -> bool {
        match mode {
            Mode::Filesystem => self.staged,
            Mode::Block => self.content == Content::Used,
        }
    }

    /// What a snapshot or copy of it holds.
    pub(super) fn cut(&self, name: &str) -> Cut {
        Cut { source: name.to_owned(), size: self.size, content: self.content, data: self.data }
    }
}

/// Keeps each belief once.
pub(super) fn distinct(states: Vec<State>) -> Vec<State> {
    let mut kept: Vec<State> = Vec::new();
    for state in states {
        if !kept.contains(&state) {
            kept.push(state);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { unit: Bytes::mib(4), too_much: Bytes::gib(100), copies: true, crowded: false };

    fn step(state: &State, op: &Op) -> (Code, State) {
        let (expected, next) = RULES.step(Mode::Filesystem, state, op);
        (expected.code, next)
    }

    #[test]
    fn a_life_in_the_model() {
        let create = Op::Create { size: Bytes::mib(17), from: None };
        let (code, made) = step(&None, &create);
        assert_eq!((code, made.as_ref().unwrap().size), (Code::Ok, Bytes::mib(20)));
        assert_eq!(step(&made, &create), (Code::Ok, made.clone()));
        let larger = Op::Create { size: Bytes::mib(21), from: None };
        assert_eq!(step(&made, &larger).0, Code::AlreadyExists);
        assert_eq!(step(&made, &Op::Publish(0)).0, Code::FailedPrecondition);
        let (_, staged) = step(&made, &Op::Stage);
        assert_eq!(step(&staged, &Op::Delete).0, Code::FailedPrecondition);
        let (code, published) = step(&staged, &Op::Publish(1));
        assert_eq!((code, published.unwrap().published), (Code::Ok, [false, true]));
        assert_eq!(step(&None, &Op::Stage).0, Code::NotFound);
        assert_eq!(RULES.lost(Mode::Filesystem, &made, &Op::Stage).len(), 4);
        assert_eq!(RULES.lost(Mode::Filesystem, &made, &Op::Validate).len(), 1);
    }
}
