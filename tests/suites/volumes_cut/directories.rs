//! What a filesystem of directory volumes must hold at a point, mounted from a copy and read without a node.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use devices::filesystem::FsType;
use rig::power_cut::{BLOCK, Images};
use rig::projects::Place;

use super::offline::Known;
use super::record::{BLOCKS, DB};
use super::site::{OURS, blocks_below};

pub(crate) fn directories(fs: FsType, images: &Images, known: &Known<'_>) -> Result<()> {
    let disk = images.disk(OURS[0])?;
    let place = Place::on(disk.path(), fs, &["prjquota"]).context("mount what the cut left")?;
    volumes(&place.root(), known)
}

fn names(directory: &Path) -> Result<BTreeSet<String>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// What a record says.
struct Record {
    size: Bytes,
    is_ready: bool,
}

fn record(root: &Path, id: &str) -> Result<Record> {
    let path = root.join(".gabion").join(format!("{id}.json"));
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let json: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("{id}: {text}"))?;
    let size = json["size"].as_u64().with_context(|| format!("{id} has no size: {text}"))?;
    Ok(Record { size: Bytes::new(size), is_ready: json["phase"] == "ready" })
}

fn volumes(root: &Path, known: &Known<'_>) -> Result<()> {
    let certain = known.volumes();
    for name in names(root)? {
        let is_volume = certain.contains(&name.as_str()) || known.is_changing(&name);
        ensure!(
            is_volume || [".gabion", "lost+found"].contains(&name.as_str()),
            "{name} should not be there"
        );
    }
    for name in names(&root.join(".gabion"))? {
        let Some(id) = name.strip_suffix(".json") else { continue };
        ensure!(certain.contains(&id) || known.is_changing(id), "{name} should not be there");
    }
    for id in certain {
        ensure!(root.join(id).is_dir(), "volume {id} is gone");
        let record = record(root, id)?;
        ensure!(record.is_ready, "volume {id} is said to be unfinished");
        if id == "db" {
            known.is_size(record.size)?;
            known.acknowledged()?.check(DB, &blocks(root, known)?).context("db")?;
        }
    }
    Ok(())
}

/// The blocks of `db`; where its file ends early there are zeroes.
fn blocks(root: &Path, known: &Known<'_>) -> Result<Vec<u8>> {
    let path = blocks_below(root, "db");
    let mut bytes = match fs::read(&path) {
        Err(_) if known.acknowledged()?.blocks(DB) == 0 => Vec::new(),
        read => read.with_context(|| format!("read {}", path.display()))?,
    };
    bytes.resize(BLOCKS * BLOCK, 0);
    Ok(bytes)
}
