//! How long a caller waits, as it said in the header `grpc-timeout`.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

/// An answer must be under way before the caller's time is over: a tenth of it earlier, within these bounds.
const LEAST_MARGIN: Duration = Duration::from_millis(20);
const MOST_MARGIN: Duration = Duration::from_secs(1);

/// The moment at which a call must be answered; `None` when its caller waits as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Of a call that came just now.
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        let patience = metadata.get("grpc-timeout").and_then(|value| patience(value.to_str().ok()?));
        // What is beyond the clock is as good as for ever.
        Self(patience.and_then(|patience| {
            let margin = (patience / 10).clamp(LEAST_MARGIN, MOST_MARGIN);
            Instant::now().checked_add(patience.saturating_sub(margin))
        }))
    }

    /// Sleeps until then.
    pub(crate) async fn reached(self) {
        match self.0 {
            Some(moment) => tokio::time::sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }
}

/// One to eight digits and a unit, by gRPC over HTTP/2 (PROTOCOL-HTTP2.md, "Timeout").
fn patience(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_header_is_read_as_grpc_has_it() {
        for (text, expected) in [
            ("5S", Some(Duration::from_secs(5))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("1500m", Some(Duration::from_millis(1500))),
            ("7u", Some(Duration::from_micros(7))),
            ("7n", Some(Duration::from_nanos(7))),
            ("2M", Some(Duration::from_secs(120))),
            ("0S", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("5", None),
            ("-5S", None),
            ("+5S", None),
            ("123456789S", None),
            ("5s", None),
            ("5é", None),
        ] {
            assert_eq!(patience(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(text in "\\PC{0,12}|[0-9]{0,9}[HMSmun]") {
            let _ = patience(&text);
            let mut metadata = MetadataMap::new();
            if let Ok(value) = text.parse() {
                metadata.insert("grpc-timeout", value);
            }
            let _ = Deadline::of(&metadata);
        }
    }
}
