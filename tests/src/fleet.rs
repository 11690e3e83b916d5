//! A group with many volumes, made with one command: its metadata are written as a text and restored from it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

/// Extents of each volume.
const EXTENTS: usize = 4;

/// Fills a group that is still without volumes with `count` linear ones, spread over its `pvs` PVs and tagged as those of
/// no class. `lvm` runs LVM's command with the words given; the text is kept in `dir`.
///
/// # Errors
///
/// If LVM refuses the text, or a file cannot be written.
pub fn fill<T>(
    lvm: impl Fn(&[&str]) -> Result<T>,
    dir: &Path,
    vg: &str,
    pvs: usize,
    count: usize,
) -> Result<()> {
    fill_tagged(lvm, dir, vg, pvs, count, &[])
}

/// The same with more tags on each volume, such as that of a class.
///
/// # Errors
///
/// As [`fill`].
pub fn fill_tagged<T>(
    lvm: impl Fn(&[&str]) -> Result<T>,
    dir: &Path,
    vg: &str,
    pvs: usize,
    count: usize,
    tags: &[&str],
) -> Result<()> {
    let file = dir.join("fleet.vg");
    let name = file.to_str().context("the directory's name is no text")?;
    lvm(&["vgcfgbackup", "-f", name, vg])?;
    let text = std::fs::read_to_string(&file).context("read the group's backup")?;
    // The group's own section is the last one.
    let end = text.rfind('}').context("the group's backup has no end")?;
    let (head, tail) = text.split_at(end);
    std::fs::write(&file, format!("{head}{}{tail}", volumes(pvs, count, tags)))
        .context("write the group's metadata")?;
    lvm(&["vgcfgrestore", "-f", name, vg])?;
    Ok(())
}

fn volumes(pvs: usize, count: usize, tags: &[&str]) -> String {
    let more: String = tags.iter().map(|tag| format!(", \"{tag}\"")).collect();
    let mut text = String::from("\n\tlogical_volumes {\n");
    for index in 0..count {
        // A string takes any text.
        let _ = write!(
            text,
            "\n\t\tpvc-{index:08x}-5d2e-4b1c-9f7a-3c6d8e0b1a24 {{\n\
             \t\t\tid = \"{}\"\n\
             \t\t\tstatus = [\"READ\", \"WRITE\", \"VISIBLE\"]\n\
             \t\t\tflags = []\n\
             \t\t\ttags = [\"gabion\", \"gabion.dev/volume=pvc-{index:08x}\", \"gabion.dev/fs=ext4\"{more}]\n\
             \t\t\tcreation_time = {}\n\
             \t\t\tcreation_host = \"node-1\"\n\
             \t\t\tsegment_count = 1\n\n\
             \t\t\tsegment1 {{\n\
             \t\t\t\tstart_extent = 0\n\
             \t\t\t\textent_count = {EXTENTS}\n\n\
             \t\t\t\ttype = \"striped\"\n\
             \t\t\t\tstripe_count = 1\n\n\
             \t\t\t\tstripes = [\n\
             \t\t\t\t\t\"pv{}\", {}\n\
             \t\t\t\t]\n\
             \t\t\t}}\n\
             \t\t}}\n",
            uuid(index),
            1_700_000_000 + index,
            index % pvs,
            index / pvs * EXTENTS,
        );
    }
    text.push_str("\t}\n");
    text
}

/// A uuid in LVM's form that no other volume of the group has.
fn uuid(index: usize) -> String {
    format!("bench0-abcd-abcd-abcd-abcd-abcd-{index:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_volume_has_extents_of_its_own() {
        let text = volumes(4, 1000, &["t"]);
        assert_eq!(text.matches("segment1 {").count(), 1000);
        assert_eq!(text.matches("ext4\", \"t\"]").count(), 1000);
        assert!(text.contains("\"pv0\", 0\n") && text.contains("\"pv3\", 996\n"));
        assert!(uuid(999).parse::<lvm::Uuid>().is_ok());
    }
}
