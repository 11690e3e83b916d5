//! What every failed operation of this workspace tells: what was tried, on what, what the system answered, and what
//! to do next.

use std::fmt;

/// What a failed operation left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing changed.
    None,
    /// The change was made, although the caller gets an error.
    Done,
    /// It cannot be told yet whether the change was made.
    Unknown,
}

impl Effect {
    /// A lasting word for programs: `none`, `done`, `unknown`.
    #[must_use]
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }
}

/// A failed operation. `K` is the library's own enumeration of what can fail.
///
/// The text is one line, and never repeats its source:
///
/// ```
/// use devices::{Error, Kind};
///
/// let error = Error::new(Kind::InUse, "use /dev/sdb")
///     .with_answer("it is mounted at /srv")
///     .with_advice("unmount it first");
/// assert_eq!(error.to_string(), "could not use /dev/sdb: it is mounted at /srv; unmount it first");
/// ```
pub struct Failure<K> {
    inner: Box<Inner<K>>,
}

struct Inner<K> {
    kind: K,
    effect: Effect,
    /// What was tried, on what: `use /dev/sdb`.
    tried: String,
    /// What the system answered, if it said anything.
    answer: Option<String>,
    /// What a person can do about it.
    advice: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl<K> Failure<K> {
    /// An error without effect; `tried` names the act and its object, in the infinitive.
    pub fn new(kind: K, tried: impl Into<String>) -> Self {
        let tried = tried.into();
        Self {
            inner: Box::new(Inner {
                kind,
                effect: Effect::None,
                tried,
                answer: None,
                advice: None,
                source: None,
            }),
        }
    }

    /// Adds what the operation left behind.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.inner.effect = effect;
        self
    }

    /// Adds what the system answered.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.inner.answer = Some(answer.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.inner.advice = Some(advice.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// What was tried, on what.
    #[must_use]
    pub fn tried(&self) -> &str {
        &self.inner.tried
    }

    /// What the system answered.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.inner.answer.as_deref()
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.inner.advice.as_deref()
    }

    /// What it left behind.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.inner.effect
    }

    /// The same story in the terms of a library above, which adds this failure as its cause.
    #[must_use]
    pub fn told_as<L>(&self, kind: L) -> Failure<L> {
        let Inner { effect, tried, answer, advice, .. } = &*self.inner;
        Failure {
            inner: Box::new(Inner {
                kind,
                effect: *effect,
                tried: tried.clone(),
                answer: answer.clone(),
                advice: advice.clone(),
                source: None,
            }),
        }
    }
}

impl<K: Copy> Failure<K> {
    /// What failed.
    #[must_use]
    pub fn kind(&self) -> K {
        self.inner.kind
    }
}

/// One line: what was tried, the answer, the advice.
impl<K> fmt::Display for Failure<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        write!(f, "could not {}", inner.tried)?;
        if let Some(answer) = &inner.answer {
            write!(f, ": {answer}")?;
        }
        match inner.effect {
            Effect::None => {}
            Effect::Done => f.write_str(" (the change was made)")?,
            Effect::Unknown => f.write_str(" (whether the change was made is not known yet)")?,
        }
        if let Some(advice) = &inner.advice {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl<K: fmt::Debug> fmt::Debug for Failure<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}: {self}", self.inner.kind, self.inner.effect)?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl<K: fmt::Debug> std::error::Error for Failure<K> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_tells_the_whole_story_in_one_line() {
        let failure = Failure::new((), "add a partition to /dev/sdb")
            .with_answer("the largest gap is 1GiB")
            .with_advice("ask for less");
        assert_eq!(
            failure.to_string(),
            "could not add a partition to /dev/sdb: the largest gap is 1GiB; ask for less"
        );
        assert_eq!(failure.effect(), Effect::None);
        let unknown = Failure::new((), "write /dev/sdb").with_effect(Effect::Unknown);
        assert_eq!(
            unknown.to_string(),
            "could not write /dev/sdb (whether the change was made is not known yet)"
        );
    }

    #[test]
    fn a_library_above_tells_the_same_story_under_its_own_kind() {
        let below = Failure::new(1, "write /dev/sdb")
            .with_effect(Effect::Done)
            .with_answer("it is full")
            .with_advice("add a disk");
        let above = below.told_as("no space");
        assert_eq!((above.kind(), above.to_string()), ("no space", below.to_string()));
    }

    #[test]
    fn the_cause_is_in_the_chain_and_not_in_the_text() {
        let cause = std::io::Error::other("the disk said no");
        let failure = Failure::new((), "read /dev/sda").with_source(cause);
        assert_eq!(failure.to_string(), "could not read /dev/sda");
        assert!(format!("{failure:?}").contains("caused by: the disk said no"));
    }
}
