//! From LVM's messages to the errors of this library.

use crate::run::{LogRecord, Reply, ReturnCode};
use crate::{Error, Kind};

/// Whether a command failed only because another one held a lock: nothing was done, and it may be tried again.
pub(crate) fn is_lock_held(records: &[LogRecord]) -> bool {
    records.iter().any(|record| record.message.contains("flock failed: Resource temporarily unavailable"))
}

/// The error of a command that LVM refused.
#[must_use]
pub fn failure(tried: &str, reply: &Reply) -> Error {
    let kind = match reply.code {
        _ if is_lock_held(&reply.records) => Kind::Busy,
        ReturnCode::InvalidParameters => Kind::InvalidArgument,
        ReturnCode::NoSuchCommand => Kind::Unsupported,
        _ => Kind::Other,
    };
    let answer: Vec<&str> =
        reply.records.iter().filter(|record| record.level <= 3).map(|record| record.message.trim()).collect();
    Error::new(kind, tried)
        .with_answer(answer.join("; "))
        .with_records(reply.records.clone())
        .with_elapsed(reply.elapsed)
}
