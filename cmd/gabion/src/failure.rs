//! Telling a person or a program what went wrong, once.

use std::fmt::Write as _;

use devices::Effect;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Format, SCHEMA};

/// An error as programs get it, on standard error.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    error: Report,
}

#[derive(Serialize)]
struct Report {
    /// The exit code.
    code: u8,
    /// The kind in one lasting word.
    kind: &'static str,
    /// What the failed operation left behind: `none`, `done`, `unknown`.
    effect: &'static str,
    /// The whole story in one line.
    message: String,
    tried: Option<String>,
    answer: Option<String>,
    advice: Option<String>,
    causes: Vec<String>,
    log: Vec<String>,
}

/// The exit code of an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(error) = volume_error(error) {
        return Exit::of_volume(error);
    }
    match (library_error(error), device_error(error)) {
        (Some(error), _) => Exit::of(error),
        (None, Some(error)) => Exit::of_device(error),
        (None, None) => Exit::Other,
    }
}

/// The error's text, with a newline at its end, as it goes to standard error.
pub(crate) fn text(error: &anyhow::Error, format: Format) -> String {
    match format {
        Format::Table => for_people(error),
        Format::Json => json(report(error)),
        Format::Yaml => yaml(report(error)),
    }
}

/// A command line that was not understood, for programs; nothing for people, who get clap's own text.
pub(crate) fn usage(message: &str, format: Format) -> Option<String> {
    let report = Report {
        code: Exit::Usage as u8,
        kind: "usage",
        effect: "none",
        message: message.trim().to_owned(),
        tried: None,
        answer: None,
        advice: None,
        causes: Vec::new(),
        log: Vec::new(),
    };
    match format {
        Format::Table => None,
        Format::Json => Some(json(report)),
        Format::Yaml => Some(yaml(report)),
    }
}

fn library_error(error: &anyhow::Error) -> Option<&lvm::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

fn device_error(error: &anyhow::Error) -> Option<&devices::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// An error about a volume; what the libraries below said is its cause, and says less.
fn volume_error(error: &anyhow::Error) -> Option<&volumes::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

fn for_people(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}\n");
    for line in log_of(error).iter().filter(|line| !error.to_string().contains(line.as_str())) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  LVM: {line}");
    }
    for cause in causes_of(error) {
        let _ = writeln!(text, "  caused by: {cause}");
    }
    text
}

fn log_of(error: &anyhow::Error) -> Vec<String> {
    let records = library_error(error).map_or(&[][..], lvm::Error::records);
    records.iter().map(|record| record.message.trim().to_owned()).collect()
}

/// The causes whose text is not a part of what was told before.
fn causes_of(error: &anyhow::Error) -> Vec<String> {
    let mut told = error.to_string();
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.contains(&text) {
            told.push_str(&text);
            causes.push(text);
        }
        next = cause.source();
    }
    causes
}

fn report(error: &anyhow::Error) -> Report {
    if let Some(told) = volume_error(error) {
        return Report {
            code: exit_of(error) as u8,
            kind: told.kind().as_word(),
            effect: told.effect().as_word(),
            message: error.to_string(),
            tried: Some(told.tried().to_owned()),
            answer: told.answer().map(str::to_owned),
            advice: told.advice().map(str::to_owned),
            causes: causes_of(error),
            log: log_of(error),
        };
    }
    let (library, device) = (library_error(error), device_error(error));
    let kind = library.map(|error| error.kind().as_word());
    let effect = library.map(lvm::Error::effect).or(device.map(devices::Error::effect));
    let tried = library.map(lvm::Error::tried).or(device.map(devices::Error::tried));
    let answer = library.and_then(lvm::Error::answer).or(device.and_then(devices::Error::answer));
    let advice = library.and_then(lvm::Error::advice).or(device.and_then(devices::Error::advice));
    Report {
        code: exit_of(error) as u8,
        kind: kind.or(device.map(|error| error.kind().as_word())).unwrap_or("other"),
        effect: effect.unwrap_or(Effect::None).as_word(),
        message: error.to_string(),
        tried: tried.map(str::to_owned),
        answer: answer.map(str::to_owned),
        advice: advice.map(str::to_owned),
        causes: causes_of(error),
        log: log_of(error),
    }
}

fn json(error: Report) -> String {
    let document = Document { schema: SCHEMA, error };
    // Strings and integers only: this cannot fail; if it did, the message itself is still told.
    let text = serde_json::to_string(&document).unwrap_or_else(|_| document.error.message.clone());
    text + "\n"
}

fn yaml(error: Report) -> String {
    let document = Document { schema: SCHEMA, error };
    // As for JSON.
    serde_saphyr::to_string(&document).unwrap_or_else(|_| document.error.message.clone() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lvm::run::LogRecord;
    use lvm::{Effect, Error, Kind, Space};

    fn full() -> anyhow::Error {
        let record = |message: &str| LogRecord { level: 3, message: message.to_owned() };
        Error::new(Kind::NoSpace(Space::Data), "create volume data/db")
            .with_answer("group data has 3 of the 5 extents needed")
            .with_advice("add a disk")
            .with_records(vec![
                record("  group data has 3 of the 5 extents needed"),
                record("  something else"),
            ])
            .with_source(std::io::Error::other("the disk said no"))
            .into()
    }

    #[test]
    fn people_read_each_fact_once() {
        assert_eq!(
            text(&full(), Format::Table),
            "error: could not create volume data/db: group data has 3 of the 5 extents needed; add a disk\n  \
             LVM: something else\n  caused by: the disk said no\n"
        );
        assert_eq!(exit_of(&full()), Exit::NoSpace);
    }

    #[test]
    fn a_cause_that_the_answer_quotes_is_not_told_again() {
        let cause = std::io::Error::other("the disk said no");
        let error =
            Error::new(Kind::Io, "read /dev/sda").with_answer("the disk said no").with_source(cause).into();
        assert_eq!(text(&error, Format::Table), "error: could not read /dev/sda: the disk said no\n");
    }

    #[test]
    fn programs_get_every_part_by_name() {
        let document: serde_json::Value = serde_json::from_str(&text(&full(), Format::Json)).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        let error = &document["error"];
        assert_eq!((error["code"].as_u64(), error["kind"].as_str()), (Some(5), Some("no-space-data")));
        assert_eq!((error["effect"].as_str(), error["advice"].as_str()), (Some("none"), Some("add a disk")));
        assert_eq!(error["causes"][0], "the disk said no");
        assert_eq!(error["log"][1], "something else");
        let unknown = Error::new(Kind::TimedOut, "x").with_effect(Effect::Unknown).into();
        let document: serde_json::Value = serde_json::from_str(&text(&unknown, Format::Json)).unwrap();
        assert_eq!(
            (document["error"]["effect"].as_str(), document["error"]["code"].as_u64()),
            (Some("unknown"), Some(9))
        );
    }

    #[test]
    fn an_error_about_a_device_is_told_like_any_other() {
        let error = || {
            let error = devices::Error::new(devices::Kind::InUse, "claim /dev/sdb");
            anyhow::Error::from(error.with_answer("it is mounted at /srv"))
        };
        assert_eq!(exit_of(&error()), Exit::Busy);
        let document: serde_json::Value = serde_json::from_str(&text(&error(), Format::Json)).unwrap();
        let told = &document["error"];
        assert_eq!((told["kind"].as_str(), told["code"].as_u64()), (Some("in-use"), Some(6)));
        assert_eq!((told["effect"].as_str(), told["tried"].as_str()), (Some("none"), Some("claim /dev/sdb")));
        assert_eq!(told["answer"], "it is mounted at /srv");
    }

    #[test]
    fn an_error_of_no_library_is_other() {
        let error = anyhow::anyhow!("something").context("while testing");
        assert_eq!(exit_of(&error), Exit::Other);
        assert_eq!(text(&error, Format::Table), "error: while testing\n  caused by: something\n");
    }
}
