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
    pub(crate) format: Format,
    pub(crate) units: Units,
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

    /// Writes a text for people; it ends with a newline.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        self.write(text.as_bytes())
    }

    /// Writes a document for programs.
    pub(crate) fn json(&mut self, body: &impl Serialize) -> Result<()> {
        let document = Document { schema: SCHEMA, body };
        let mut text = serde_json::to_vec_pretty(&document).context("could not write the result as JSON")?;
        text.push(b'\n');
        self.write(&text)
    }

    /// Writes a document for programs that takes one line, one of several.
    pub(crate) fn json_line(&mut self, body: &impl Serialize) -> Result<()> {
        let document = Document { schema: SCHEMA, body };
        let mut text = serde_json::to_vec(&document).context("could not write the result as JSON")?;
        text.push(b'\n');
        self.write(&text)
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

    #[test]
    fn a_reader_that_has_had_enough_is_no_error_and_a_full_disk_is() {
        let mut closed = Closed(io::ErrorKind::BrokenPipe);
        let mut output = Output::new(Format::Table, Units::Human, &mut closed);
        assert!(output.has_reader());
        assert!(output.text("x\n").is_ok());
        assert!(!output.has_reader());
        let mut full = Closed(io::ErrorKind::StorageFull);
        assert!(Output::new(Format::Table, Units::Human, &mut full).text("x\n").is_err());
    }

    #[test]
    fn documents_carry_the_schema_first() {
        #[derive(Serialize)]
        struct Body {
            size_bytes: u64,
        }
        let mut written = Vec::new();
        Output::new(Format::Json, Units::Human, &mut written).json(&Body { size_bytes: u64::MAX }).unwrap();
        let text = String::from_utf8(written).unwrap();
        let expected = "{\n  \"schema\": \"gabion.dev/cli/v1\",\n  \"size_bytes\": 18446744073709551615\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn sizes_are_exact_when_asked() {
        assert_eq!(Units::Human.size(Bytes::mib(1536)), "1.5 GiB");
        assert_eq!(Units::Exact.size(Bytes::mib(1536)), "1610612736");
    }
}
