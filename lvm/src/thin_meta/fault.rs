//! What goes wrong while metadata are read, before it is told to a caller.

use std::io;

use crate::{Error, Kind};

/// A block cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("block {block} cannot be read")]
    Read { block: u64, source: io::Error },
    #[error("block {block} is damaged: {what}")]
    Damaged { block: u64, what: &'static str },
}

impl Fault {
    pub(super) fn error(self, tried: &str) -> Error {
        let answer = self.to_string();
        match &self {
            Self::Read { source, .. } => {
                let answer = format!("{answer}: {source}");
                Error::new(Kind::Io, tried).with_answer(answer).with_source(self)
            }
            Self::Damaged { .. } => Error::new(Kind::Inconsistent, tried)
                .with_answer(answer)
                .with_advice("check the pool with thin_check and repair it with lvconvert --repair")
                .with_source(self),
        }
    }
}
