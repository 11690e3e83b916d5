//! The one way to standard output.

use std::io::{self, Write};

use anyhow::{Context, Result};
use devices::Bytes;
use serde::Serialize;

/// The version of the documents that programs get; see README.md of this package for their fields.
pub(crate) const SCHEMA: &str = "gabion.dev/cli/v1";

/// For whom a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    #[default]
    Table,
    /// JSON for programs
    Json,
    /// YAML for programs and people
    Yaml,
}

/// How sizes are written in tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Units {
    /// `1.5 GiB`
    #[default]
    Human,
    /// `1610612736`
    Exact,
}

impl Units {
    /// A size as a table has it.
    pub(crate) fn size(self, size: Bytes) -> String {
        match self {
            Self::Human => size.to_string(),
            Self::Exact => size.get().to_string(),
        }
    }
}

/// Where results go.
pub(crate) struct Output<'a> {
    format: Format,
    units: Units,
    to: &'a mut dyn Write,
    has_reader: bool,
}

/// A result for programs: the schema's version, then the fields of the body.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

impl<'a> Output<'a> {
    pub(crate) fn new(format: Format, units: Units, to: &'a mut dyn Write) -> Self {
        Self { format, units, to, has_reader: true }
    }

    /// Writes the one result of a run: `body` for programs, or the text made of it for people.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        body: &T,
        for_people: impl FnOnce(&T, Units) -> String,
    ) -> Result<()> {
        self.write_as(body, for_people, |document| serde_json::to_string_pretty(document), "")
    }

    /// Writes one result of several: as a line, or as a YAML document of its own.
    pub(crate) fn show_next<T: Serialize>(
        &mut self,
        body: &T,
        for_people: impl FnOnce(&T, Units) -> String,
    ) -> Result<()> {
        self.write_as(body, for_people, |document| serde_json::to_string(document), "---\n")
    }

    fn write_as<T: Serialize>(
        &mut self,
        body: &T,
        for_people: impl FnOnce(&T, Units) -> String,
        json: impl FnOnce(&Document<'_, T>) -> serde_json::Result<String>,
        before_yaml: &str,
    ) -> Result<()> {
        let document = Document { schema: SCHEMA, body };
        let text = match self.format {
            Format::Table => for_people(body, self.units),
            Format::Json => json(&document).context("could not write the result as JSON")? + "\n",
            Format::Yaml => format!("{before_yaml}{}", yaml(&document)?),
        };
        self.write(text.as_bytes())
    }

    /// Whether anybody reads on, as far as the last write showed: what never ends by itself ends when nobody does.
    pub(crate) fn has_reader(&self) -> bool {
        self.has_reader
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.to.write_all(bytes).and_then(|()| self.to.flush()) {
            // Who reads has had enough (`gabion volumes | head -1`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.has_reader = false;
                Ok(())
            }
            other => other.context("could not write to standard output"),
        }
    }
}

fn yaml(document: &impl Serialize) -> Result<String> {
    let text = serde_saphyr::to_string(document).context("could not write the result as YAML")?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Serialize)]
    struct Body {
        size_bytes: u64,
        state: Option<&'static str>,
        tags: Vec<&'static str>,
    }

    fn body() -> Body {
        Body { size_bytes: u64::MAX, state: None, tags: vec!["yes", "a: b", "0x10", "line\nbreak"] }
    }

    fn shown(format: Format, write: impl FnOnce(&mut Output<'_>) -> Result<()>) -> String {
        let mut written = Vec::new();
        write(&mut Output::new(format, Units::Human, &mut written)).unwrap();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn a_reader_that_has_had_enough_is_no_error_and_a_full_disk_is() {
        let line = |_: &Body, _| "x\n".to_owned();
        let mut closed = Closed(io::ErrorKind::BrokenPipe);
        let mut output = Output::new(Format::Table, Units::Human, &mut closed);
        assert!(output.has_reader());
        assert!(output.show(&body(), line).is_ok());
        assert!(!output.has_reader());
        let mut full = Closed(io::ErrorKind::StorageFull);
        assert!(Output::new(Format::Table, Units::Human, &mut full).show(&body(), line).is_err());
    }

    #[test]
    fn documents_carry_the_schema_first() {
        let json = shown(Format::Json, |output| output.show(&body(), |_, _| String::new()));
        let begin = "{\n  \"schema\": \"gabion.dev/cli/v1\",\n  \"size_bytes\": 18446744073709551615,\n";
        assert!(json.starts_with(begin), "{json}");
        let yaml = shown(Format::Yaml, |output| output.show(&body(), |_, _| String::new()));
        let begin = "schema: gabion.dev/cli/v1\nsize_bytes: 18446744073709551615\nstate: null\n";
        assert!(yaml.starts_with(begin), "{yaml}");
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let json = shown(Format::Json, |output| output.show(&body(), |_, _| String::new()));
        let yaml = shown(Format::Yaml, |output| output.show(&body(), |_, _| String::new()));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let yaml: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(json, yaml);
    }

    #[test]
    fn results_that_follow_each_other_can_be_told_apart() {
        let twice = |format| {
            shown(format, |output| {
                output.show_next(&body(), |_, _| String::new())?;
                output.show_next(&body(), |_, _| String::new())
            })
        };
        assert_eq!(twice(Format::Json).lines().count(), 2);
        assert_eq!(twice(Format::Yaml).matches("---\n").count(), 2);
    }

    #[test]
    fn sizes_are_exact_when_asked() {
        assert_eq!(Units::Human.size(Bytes::mib(1536)), "1.5 GiB");
        assert_eq!(Units::Exact.size(Bytes::mib(1536)), "1610612736");
    }
}
