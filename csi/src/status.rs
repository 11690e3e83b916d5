//! What an error of the library is called on the wire, and where it is told.

use tonic::{Code, Response, Status};
use volumes::{Error, Kind};

/// The longest text of a refusal. It travels in a header, percent-encoded, and some callers take no more than 8 KiB.
const LONGEST: usize = 1024;

/// The code of a kind of error, for every call that has no better one.
#[must_use]
pub const fn code(kind: Kind) -> Code {
    match kind {
        Kind::NotFound => Code::NotFound,
        Kind::Exists => Code::AlreadyExists,
        // The caller comes back: another call on the same volume is under way.
        Kind::Busy => Code::Aborted,
        Kind::NoSpace => Code::ResourceExhausted,
        Kind::InvalidArgument => Code::InvalidArgument,
        Kind::OutOfRange => Code::OutOfRange,
        Kind::InUse | Kind::Refused | Kind::FailedPrecondition => Code::FailedPrecondition,
        Kind::Unavailable => Code::Unavailable,
        // `Internal`, and what a later version of the library adds.
        _ => Code::Internal,
    }
}

/// An error as its caller gets it.
pub(crate) fn of(error: &Error) -> Status {
    status(code(error.kind()), &error.to_string())
}

/// The same for growing, where no room means that this size can never be had here: the caller may ask for less.
pub(crate) fn of_growing(error: &Error) -> Status {
    match error.kind() {
        Kind::NoSpace => status(Code::OutOfRange, &error.to_string()),
        _ => of(error),
    }
}

/// The same for making a volume from a source: what the class cannot do was wrong to ask for.
pub(crate) fn of_making(error: &Error) -> Status {
    match error.kind() {
        Kind::FailedPrecondition => status(Code::InvalidArgument, &error.to_string()),
        _ => of(error),
    }
}

/// A refusal of a field.
pub(crate) fn invalid(field: &str, why: impl std::fmt::Display) -> Status {
    status(Code::InvalidArgument, &format!("{field}: {why}"))
}

/// A status whose text is one line of bounded length, whatever a caller put into it.
pub(crate) fn status(code: Code, text: &str) -> Status {
    Status::new(code, one_line(text))
}

/// A text as one line of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LONGEST));
    for character in text.chars() {
        if line.len() >= LONGEST {
            line.push('…');
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}

/// What a caller wrote, quoted and cut, so that it can stand in a text.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let cut: String = text.chars().take(MOST).collect();
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

/// Tells of a refusal on standard error, since many callers drop it, and wraps the answer.
///
/// Only the call and the refusal are told: a request may hold secrets.
pub(crate) fn answer<T>(call: &str, result: Result<T, Status>) -> Result<Response<T>, Status> {
    result.map(Response::new).inspect_err(|refusal| {
        if told(refusal.code()) {
            eprintln!("{call}: {:?}: {}", refusal.code(), refusal.message());
        }
    })
}

/// Whether a refusal is worth a line: callers ask for what is not there, or too early, all the time.
fn told(code: Code) -> bool {
    !matches!(code, Code::NotFound | Code::Aborted | Code::Unimplemented)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code() {
        let codes: Vec<(&str, Code)> = Kind::ALL
            .into_iter()
            .map(|kind| (kind.as_word(), of(&Error::new(kind, "test")).code()))
            .collect();
        let expected = [
            ("not-found", Code::NotFound),
            ("exists", Code::AlreadyExists),
            ("busy", Code::Aborted),
            ("no-space", Code::ResourceExhausted),
            ("invalid-argument", Code::InvalidArgument),
            ("out-of-range", Code::OutOfRange),
            ("in-use", Code::FailedPrecondition),
            ("refused", Code::FailedPrecondition),
            ("failed-precondition", Code::FailedPrecondition),
            ("unavailable", Code::Unavailable),
            ("internal", Code::Internal),
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn two_calls_mean_something_else_by_one_kind() {
        let error = |kind| Error::new(kind, "test");
        assert_eq!(of_growing(&error(Kind::NoSpace)).code(), Code::OutOfRange);
        assert_eq!(of_making(&error(Kind::FailedPrecondition)).code(), Code::InvalidArgument);
        for kind in Kind::ALL {
            let usual = of(&error(kind)).code();
            assert!(kind == Kind::NoSpace || of_growing(&error(kind)).code() == usual);
            assert!(kind == Kind::FailedPrecondition || of_making(&error(kind)).code() == usual);
        }
    }

    #[test]
    fn a_refusal_is_one_line_of_bounded_length() {
        let refusal = invalid("name", format!("a\nb\u{1b}[31m{}", "x".repeat(1 << 20)));
        assert!(refusal.message().len() < LONGEST + 10);
        assert!(!refusal.message().contains(char::is_control), "{}", refusal.message());
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        assert!(shown(&"y".repeat(1 << 20)).len() < 100);
    }
}
