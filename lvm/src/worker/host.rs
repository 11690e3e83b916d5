//! What our LVM shares with the host's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::metadata::{Section, Value};
use crate::{Error, Kind};

/// The directory of the host's own configuration.
pub const HOST_DIR: &str = "/etc/lvm";

/// Settings that every program with LVM on one host must agree on: where the locks are, and which groups are this
/// host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// Where the file locks of groups are.
    pub locking_dir: PathBuf,
    /// Where a new group's system id comes from: `none`, `lvmlocal`, `uname`, `machineid`, `appmachineid` or `file`.
    pub system_id_source: String,
    /// The file for the source `file`.
    pub system_id_file: Option<PathBuf>,
    /// The id for the source `lvmlocal`.
    pub system_id: Option<String>,
    /// Ids of other hosts whose groups this one may use too.
    pub extra_system_ids: Vec<String>,
}

/// What LVM takes where its files set nothing.
impl Default for HostSettings {
    fn default() -> Self {
        Self {
            locking_dir: PathBuf::from("/run/lock/lvm"),
            system_id_source: "none".to_owned(),
            system_id_file: None,
            system_id: None,
            extra_system_ids: Vec::new(),
        }
    }
}

impl HostSettings {
    /// Reads `lvm.conf` and `lvmlocal.conf` of a directory, usually [`HOST_DIR`]. A file that is not there sets
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] for a file that cannot be read, [`Kind::InvalidArgument`] for one that is no LVM configuration:
    /// locks in the wrong place are worse than none.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use lvm::worker::host::HostSettings;
    ///
    /// let settings = HostSettings::read(Path::new("/nonexistent"))?;
    /// assert_eq!(settings, HostSettings::default());
    /// # Ok::<(), lvm::Error>(())
    /// ```
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let mut settings = Self::default();
        for name in ["lvm.conf", "lvmlocal.conf"] {
            let file = directory.join(name);
            let tried = || format!("read the host's LVM settings from {}", file.display());
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(Error::new(Kind::Io, tried())
                        .with_answer(error.to_string())
                        .with_source(error));
                }
            };
            let tree: Section = text.parse().map_err(|error: crate::metadata::Defect| {
                Error::new(Kind::InvalidArgument, tried())
                    .with_answer(error.to_string())
                    .with_advice("`lvmconfig --validate` says more")
                    .with_source(error)
            })?;
            settings.take(&tree);
        }
        Ok(settings)
    }

    fn take(&mut self, tree: &Section) {
        if let Some(dir) = text(tree, "global", "locking_dir") {
            self.locking_dir = PathBuf::from(dir);
        }
        if let Some(source) = text(tree, "global", "system_id_source") {
            self.system_id_source = source;
        }
        if let Some(file) = text(tree, "global", "system_id_file") {
            self.system_id_file = Some(PathBuf::from(file));
        }
        if let Some(id) = text(tree, "local", "system_id") {
            self.system_id = Some(id);
        }
        if let Some(Value::List(ids)) = value(tree, "local", "extra_system_ids") {
            let texts = ids.iter().filter_map(as_text);
            self.extra_system_ids = texts.collect();
        }
    }
}

/// A setting as `section { key = … }` or `section/key = …`.
fn value<'a>(tree: &'a Section, section: &str, key: &str) -> Option<&'a Value> {
    let nested = tree.section(section).and_then(|section| section.value(key));
    nested.or_else(|| tree.value(&format!("{section}/{key}")))
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    }
}

fn text(tree: &Section, section: &str, key: &str) -> Option<String> {
    value(tree, section, key).and_then(as_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lvm: &str, local: &str) -> Result<HostSettings, Error> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("lvm.conf"), lvm).unwrap();
        fs::write(dir.path().join("lvmlocal.conf"), local).unwrap();
        HostSettings::read(dir.path())
    }

    #[test]
    fn both_ways_of_writing_a_setting_are_read() {
        let settings = read(
            "# system_id_source = \"none\"\nglobal {\n\tlocking_dir = \"/l\"\n\tsystem_id_source=\"lvmlocal\"\n}\n\
             global/system_id_file = \"/f\"\n",
            "local { system_id = \"me\" extra_system_ids = [ \"a\", \"b\" ] }",
        )
        .unwrap();
        assert_eq!(settings.locking_dir, Path::new("/l"));
        assert_eq!(settings.system_id_source, "lvmlocal");
        assert_eq!(settings.system_id_file.as_deref(), Some(Path::new("/f")));
        assert_eq!(settings.system_id.as_deref(), Some("me"));
        assert_eq!(settings.extra_system_ids, ["a", "b"]);
    }

    #[test]
    fn comments_set_nothing_and_rubbish_is_refused() {
        let comments = "global {\n\t# locking_dir = \"/x\"\n}\n";
        assert_eq!(read(comments, "local { system_id = \"\" }").unwrap(), HostSettings::default());
        assert_eq!(read("global { locking_dir = ", "").unwrap_err().kind(), Kind::InvalidArgument);
    }
}
