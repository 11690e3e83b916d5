//! The attributes of one sysfs directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::system;
use crate::{Approximate, Error, Kind};

/// A directory of attributes.
#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    dir: PathBuf,
}

impl Attributes {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The text without the newline at its end.
    pub(crate) fn text(&self, name: &str) -> Result<String, Error> {
        let path = self.dir.join(name);
        let read = std::fs::read(&path).map_err(system(format!("read {}", path.display())))?;
        Ok(String::from_utf8_lossy(&read).trim_end_matches(['\n', '\0']).to_owned())
    }

    /// The text, or `None` where the kernel has no such attribute.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<String>, Error> {
        match self.text(name) {
            Err(error) if error.kind() == Kind::NotFound && self.dir.exists() => Ok(None),
            other => other.map(Some),
        }
    }

    /// A whole number, or whatever else prints and parses itself.
    pub(crate) fn value<T: std::str::FromStr>(&self, name: &str) -> Result<T, Error> {
        let text = self.text(name)?;
        text.trim().parse().map_err(|_| self.not_understood(name, &text))
    }

    pub(crate) fn size(&self, name: &str) -> Result<Approximate, Error> {
        self.value(name)
    }

    /// The word in brackets of a list (`writethrough [writeback] none`), or the only word.
    pub(crate) fn chosen<T>(&self, name: &str, of_word: fn(&str) -> Option<T>) -> Result<T, Error> {
        let text = self.text(name)?;
        let bracketed = || text.split_once('[')?.1.split_once(']').map(|(word, _)| word);
        of_word(bracketed().unwrap_or(text.trim())).ok_or_else(|| self.not_understood(name, &text))
    }

    pub(crate) fn write(&self, name: &str, value: &str) -> Result<(), Error> {
        let path = self.dir.join(name);
        write(&path, value).map_err(system(format!("write {value:?} to {}", path.display())))
    }

    /// The last part of what a symbolic link points to; `None` where there is none.
    pub(crate) fn link(&self, name: &str) -> Option<String> {
        let target = std::fs::read_link(self.dir.join(name)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// The names of the symbolic links that are `prefix` and a number, by number.
    pub(crate) fn links(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let tried = format!("list {}", self.dir.display());
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(system(tried.clone()))? {
            let name = entry.map_err(system(tried.clone()))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u32>().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| format!("{prefix}{number}")).collect())
    }

    fn not_understood(&self, name: &str, text: &str) -> Error {
        let tried = format!("understand {}", self.dir.join(name).display());
        Error::new(Kind::Unsupported, tried).with_answer(format!("it says {text:?}"))
    }
}

/// Writes an attribute in one call, as the kernel wants it.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CacheMode;

    #[test]
    fn attributes_are_read_by_their_type() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cache_mode", "writethrough [writeback] writearound none\n"),
            ("state", "no cache\n"),
            ("label", "\n"),
            ("dirty_data", "8.0M\n"),
            ("odd", "[x] y\n"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let attributes = Attributes::new(dir.path().to_owned());
        assert_eq!(attributes.chosen("cache_mode", CacheMode::of_word).unwrap(), CacheMode::WriteBack);
        assert_eq!(attributes.chosen("state", crate::State::of_word).unwrap(), crate::State::NoCache);
        assert_eq!(attributes.text("label").unwrap(), "");
        assert_eq!(attributes.size("dirty_data").unwrap().at_least(), devices::Bytes::mib(8));
        assert_eq!(attributes.optional("readahead").unwrap(), None);
        let error = attributes.chosen("odd", CacheMode::of_word).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains("it says \"[x] y\""), "{error}");
        let error = attributes.write("none", "1").unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        assert!(error.to_string().starts_with("could not write \"1\" to "), "{error}");
    }
}
