//! The words of a table or status line.

use devices::{DeviceNumber, Sectors};

/// A line that the kernel wrote is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {what} line of a {kind} target is not understood: {text:?}")]
pub struct LineError {
    what: &'static str,
    kind: String,
    text: String,
}

impl LineError {
    /// `what` is `table` or `status`; long lines are cut at 500 characters.
    pub(super) fn new(what: &'static str, kind: &str, text: &str) -> Self {
        Self { what, kind: kind.to_owned(), text: text.chars().take(500).collect() }
    }
}

/// Takes a line apart from left to right; every step is `None` when the word is missing or not of its form.
pub(super) struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self(line.split_ascii_whitespace())
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    pub(super) fn owned(&mut self) -> Option<String> {
        self.word().map(str::to_owned)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    pub(super) fn sectors(&mut self) -> Option<Sectors> {
        self.number().map(Sectors::new)
    }

    /// `used/total`.
    pub(super) fn ratio(&mut self) -> Option<(u64, u64)> {
        let (used, total) = self.word()?.split_once('/')?;
        Some((used.parse().ok()?, total.parse().ok()?))
    }

    /// `major:minor`, the form in which the kernel prints devices.
    pub(super) fn device(&mut self) -> Option<DeviceNumber> {
        self.number()
    }

    /// `major:minor`, or `-` for none.
    pub(super) fn device_or_none(&mut self) -> Option<Option<DeviceNumber>> {
        match self.word()? {
            "-" => Some(None),
            device => device.parse().ok().map(Some),
        }
    }

    /// A count and as many words.
    pub(super) fn counted(&mut self) -> Option<Vec<String>> {
        let count = self.number()?;
        self.repeated(count, Self::owned)
    }

    /// `step`, `count` times; memory is bounded by the line, whatever the count says.
    pub(super) fn repeated<T>(
        &mut self,
        count: usize,
        mut step: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(step(self)?);
        }
        Some(items)
    }
}
