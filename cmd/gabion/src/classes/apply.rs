//! `gabion class apply`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use volumes::class::DeviceClass;
use volumes::{Error, Kind};

use crate::cli::ClassCommand;
use crate::output::Output;

/// What an application changes, for programs.
#[derive(Serialize)]
struct Applied {
    changed: bool,
    classes: Vec<OfClass>,
}

#[derive(Serialize)]
struct OfClass {
    name: String,
    /// `added`, `changed`, `same`; what the file does not name stays as it is.
    change: &'static str,
}

/// Does what is asked to classes.
pub(crate) fn run(command: &ClassCommand, output: &mut Output<'_>) -> Result<()> {
    let ClassCommand::Apply { file, dry_run, place } = command;
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let new = documents(&text);
    let old = match fs::read_to_string(&place.config) {
        Ok(text) => documents(&text),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(cause).with_context(|| format!("reading {}", place.config.display())),
    };
    let (merged, changes) = merge(&old, &new)?;
    let changed = changes.iter().any(|class| class.change != "same");
    if changed && !dry_run {
        replace(&place.config, &merged)?;
    }
    let applied = Applied { changed: changed && !dry_run, classes: changes };
    output.show(&applied, |applied, _| {
        applied.classes.iter().map(|class| format!("class {}: {}\n", class.name, class.change)).collect()
    })
}

/// The documents of a YAML text, as they are written.
fn documents(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    all.retain(|document| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'))
    });
    all
}

/// One class of one document.
fn class(document: &str) -> Result<DeviceClass> {
    let mut all = DeviceClass::parse_all(document).or_else(|error| {
        // A class that shares with another one is checked with all of them afterwards.
        let value: serde_json::Value = serde_saphyr::from_str(document).map_err(|_| error)?;
        DeviceClass::from_json(&value).map(|class| vec![class])
    })?;
    match (all.pop(), all.is_empty()) {
        (Some(class), true) => Ok(class),
        _ => Err(Error::new(Kind::InvalidArgument, "take the classes")
            .with_answer("a document does not hold one class")
            .into()),
    }
}

/// The text with every class of both, the new ones in the place of old ones of their names.
fn merge(old: &[String], new: &[String]) -> Result<(String, Vec<OfClass>)> {
    let parsed = |all: &[String]| -> Result<Vec<(DeviceClass, String)>> {
        all.iter().map(|document| Ok((class(document)?, document.clone()))).collect()
    };
    let (mut all, new) = (parsed(old)?, parsed(new)?);
    let mut changes = Vec::new();
    for (class, document) in new {
        let change = match all.iter_mut().find(|(there, _)| there.name == class.name) {
            None => {
                all.push((class.clone(), document));
                "added"
            }
            Some((there, _)) if *there == class => "same",
            Some(there) => {
                let forbidden = there.0.forbidden_changes(&class);
                if !forbidden.is_empty() {
                    let why: Vec<String> = forbidden.iter().map(ToString::to_string).collect();
                    return Err(Error::new(Kind::InvalidArgument, format!("change class {}", class.name))
                        .with_answer(why.join("; "))
                        .into());
                }
                *there = (class.clone(), document);
                "changed"
            }
        };
        changes.push(OfClass { name: class.name.to_string(), change });
    }
    let text = all.iter().map(|(_, document)| document.as_str()).collect::<Vec<_>>().join("---\n");
    // What only all of them together can get wrong.
    DeviceClass::parse_all(&text)?;
    Ok((text, changes))
}

/// Replaces the file as a whole: whoever reads it gets the old or the new one, also after a loss of power.
fn replace(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().context("the file with the classes has no directory")?;
    let tried = || format!("writing {}", path.display());
    fs::create_dir_all(directory).with_context(tried)?;
    let fresh = path.with_extension(format!("new.{}", std::process::id()));
    let mut file = fs::File::create(&fresh).with_context(tried)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(tried)?;
    fs::rename(&fresh, path).with_context(tried)?;
    fs::File::open(directory).and_then(|directory| directory.sync_all()).with_context(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, spec: &str) -> String {
        format!(
            "# about it\napiVersion: gabion.dev/v1alpha1\nkind: DeviceClass\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    }

    #[test]
    fn classes_are_added_and_changed_and_the_others_stay_as_they_are_written() {
        let old =
            [document("a", "{devices: {paths: [/dev/a]}}"), document("b", "{devices: {paths: [/dev/b]}}")];
        let new = [
            document("a", "{devices: {paths: [/dev/a]}, reserve: 5%}"),
            document("b", "{devices: {paths: [/dev/b]}}"),
            document("c", "{devices: {sharedWith: a}, pool: {lvm: {}}}"),
        ];
        let (text, changes) = merge(&old, &new).unwrap();
        let changes: Vec<_> = changes.iter().map(|class| (class.name.as_str(), class.change)).collect();
        assert_eq!(changes, [("a", "changed"), ("b", "same"), ("c", "added")]);
        assert_eq!(text.matches("# about it").count(), 3);
        assert_eq!(documents(&text).len(), 3);
        assert_eq!(DeviceClass::parse_all(&text).unwrap().len(), 3);
    }

    #[test]
    fn what_a_pool_is_built_of_is_not_changed_and_what_cannot_be_together_is_refused() {
        let old = [document("a", "{devices: {paths: [/dev/a]}}")];
        for (new, why) in [
            (document("a", "{devices: {paths: [/dev/a]}, pool: {lvm: {}}}"), "spec.pool cannot change"),
            (document("b", "{devices: {sharedWith: none}}"), "not there"),
            (document("b", "{devices: {paths: [relative]}}"), "spec.devices"),
            ("just: a text\n".to_owned(), "apiVersion"),
        ] {
            let error = match merge(&old, &[new]) {
                Ok(_) => panic!("{why}"),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/classes.yaml");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
