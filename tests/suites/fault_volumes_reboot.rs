//! The whole life of volumes of each kind with a loss of power in it: the next start of the machine has nothing but the
//! disks, and everything that was acknowledged is there.

#![allow(clippy::unwrap_used, reason = "a suite is tests only: a panic is its way to fail")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use devices::filesystem::FsType;
use rig::life::{Before, Copies, Life};
use rig::node::NodeLab;
use rig::projects::{self, Place};
use rig::{skip_unless_dm, skip_unless_installed, virtual_disks};

/// A kind of volume.
#[derive(Clone, Copy)]
struct Row {
    life: Life,
    pool: Pool,
    disks: usize,
}

#[derive(Clone, Copy)]
enum Pool {
    /// What the class says of it.
    Of(&'static str),
    /// Directories in a filesystem like their own.
    Directories,
}

const fn row(class: &'static str, fs: FsType, pool: &'static str, copies: Copies, disks: usize) -> Row {
    Row { life: Life { class, fs, copies }, pool: Pool::Of(pool), disks }
}

const fn directories(class: &'static str, fs: FsType) -> Row {
    Row { life: Life { class, fs, copies: Copies::No }, pool: Pool::Directories, disks: 1 }
}

const STRIPED: &str = "{lvm: {layout: {striped: {stripes: 2}}}}";

const MIRRORED: &str = "{lvm: {layout: {raid: {level: 1}}}}";
const PARITY: &str = "{lvm: {layout: {raid: {level: 5}}}}";
const THIN_MIRRORED: &str = "{thin: {layout: {raid: {level: 1}}}}";

const RAID1_EXT4: Row = row("raid1", FsType::Ext4, MIRRORED, Copies::Yes, 2);
const RAID5_XFS: Row = row("raid5", FsType::Xfs, PARITY, Copies::Yes, 3);
const THIN_RAID1_EXT4: Row = row("thin-raid1", FsType::Ext4, THIN_MIRRORED, Copies::Yes, 2);
const LINEAR_EXT4: Row = row("linear", FsType::Ext4, "{lvm: {}}", Copies::Yes, 1);
const LINEAR_XFS: Row = row("linear", FsType::Xfs, "{lvm: {}}", Copies::Yes, 1);
const STRIPED_EXT4: Row = row("striped", FsType::Ext4, STRIPED, Copies::Yes, 2);
const THIN_EXT4: Row = row("thin", FsType::Ext4, "{thin: {}}", Copies::Yes, 1);
const THIN_XFS: Row = row("thin", FsType::Xfs, "{thin: {}}", Copies::Yes, 1);
const THIN_BTRFS: Row = row("thin", FsType::Btrfs, "{thin: {}}", Copies::Yes, 1);
const PARTITION_EXT4: Row = row("partition", FsType::Ext4, "{partition: {}}", Copies::No, 1);
const PARTITION_XFS: Row = row("partition", FsType::Xfs, "{partition: {}}", Copies::No, 1);
const DIRECTORY_EXT4: Row = directories("directory", FsType::Ext4);
const DIRECTORY_XFS: Row = directories("directory", FsType::Xfs);

/// A node with a class for each row. What comes first ends first.
struct Site {
    lab: NodeLab,
    _places: Vec<Place>,
}

impl Site {
    /// On these disks, of which those of directories are formatted the first time.
    fn open(rows: &[Row], disks: &[PathBuf], is_first: bool) -> Result<Self> {
        let (mut left, mut used, mut places, mut classes) = (disks, Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let (own, others) = left.split_at_checked(row.disks).context("there are too few disks")?;
            left = others;
            let paths: Vec<String> = own.iter().map(|disk| disk.display().to_string()).collect();
            match row.pool {
                Pool::Of(pool) => {
                    used.extend(own.to_vec());
                    classes.push(
                        row.life.class(&format!("devices: {{paths: [{}]}}, pool: {pool}", paths.join(", "))),
                    );
                }
                Pool::Directories => {
                    if is_first {
                        projects::format(&own[0], row.life.fs)?;
                    }
                    let place = Place::on(&own[0], row.life.fs, &["prjquota"])?;
                    fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755))?;
                    let pool = format!("pool: {{directory: {{path: {}}}}}", place.root().display());
                    classes.push(row.life.class(&pool));
                    places.push(place);
                }
            }
        }
        Ok(Self { lab: NodeLab::on(used, &classes.join("\n---\n"))?, _places: places })
    }
}

/// What is to be known after the power went, on a disk of its own.
struct Notes(PathBuf);

impl Notes {
    const LENGTH: usize = 64 << 10;

    fn write(&self, before: &[Before]) -> Result<()> {
        let mut text = serde_json::to_vec(before)?;
        ensure!(text.len() <= Self::LENGTH, "{} bytes to note", text.len());
        text.resize(Self::LENGTH, b' ');
        let disk = File::options().write(true).open(&self.0)?;
        disk.write_all_at(&text, 0)?;
        Ok(disk.sync_all()?)
    }

    fn read(&self) -> Result<Vec<Before>> {
        let mut text = vec![0; Self::LENGTH];
        File::open(&self.0)?.read_exact_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

fn cut_power() -> Result<()> {
    println!("\nRIG: cut power");
    thread::sleep(Duration::from_secs(60));
    bail!("the power was not cut")
}

/// Everything up to the loss of power; from the second one on, with all volumes in use; and the rest.
fn live(rows: &[Row], cuts: usize) -> Result<()> {
    if skip_unless_dm() || skip_unless_installed(&["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"]) {
        return Ok(());
    }
    let disks = virtual_disks();
    let (notes, disks) = disks.split_last().context("there are no disks")?;
    let notes = Notes(notes.clone());
    let phase: usize = std::env::var("GABION_PHASE").context("no phase")?.parse()?;
    let site = Site::open(rows, disks, phase == 0)?;
    if phase == 0 {
        let mut before = Vec::new();
        for row in rows {
            let start = Instant::now();
            before.push(row.life.until_restart(&site.lab).with_context(|| row.life.class)?);
            println!(
                "FIGURES: {} until the power went: {:.1} s",
                row.life.class,
                start.elapsed().as_secs_f64()
            );
        }
        notes.write(&before)?;
        return cut_power();
    }
    for (row, before) in rows.iter().zip(notes.read()?) {
        let done = match phase < cuts {
            true => row.life.is_there(&site.lab, &before),
            false => row.life.after_restart(&site.lab, &before),
        };
        done.with_context(|| format!("{} after power cut {phase}", row.life.class))?;
    }
    if phase < cuts {
        return cut_power();
    }
    Ok(())
}

/// One start of the machine for all of them.
mod smoke {
    mod seconds_300 {
        use super::super::*;

        #[test]
        fn volumes_of_each_kind_live_whole_lives_with_a_loss_of_power() -> Result<()> {
            live(&[LINEAR_EXT4, THIN_EXT4, PARTITION_EXT4, DIRECTORY_EXT4], 1)
        }
    }
}

/// Each with two losses of power, its volumes in use at the second one.
mod minutes_10 {
    use super::*;

    #[test]
    fn linear_ext4() -> Result<()> {
        live(&[LINEAR_EXT4], 2)
    }

    #[test]
    fn linear_xfs() -> Result<()> {
        live(&[LINEAR_XFS], 2)
    }

    #[test]
    fn striped_ext4() -> Result<()> {
        live(&[STRIPED_EXT4], 2)
    }

    #[test]
    fn raid1_ext4() -> Result<()> {
        live(&[RAID1_EXT4], 2)
    }

    #[test]
    fn raid5_xfs() -> Result<()> {
        live(&[RAID5_XFS], 2)
    }

    #[test]
    fn thin_raid1_ext4() -> Result<()> {
        live(&[THIN_RAID1_EXT4], 2)
    }

    #[test]
    fn thin_ext4() -> Result<()> {
        live(&[THIN_EXT4], 2)
    }

    #[test]
    fn thin_xfs() -> Result<()> {
        live(&[THIN_XFS], 2)
    }

    #[test]
    fn thin_btrfs() -> Result<()> {
        live(&[THIN_BTRFS], 2)
    }

    #[test]
    fn partition_ext4() -> Result<()> {
        live(&[PARTITION_EXT4], 2)
    }

    #[test]
    fn partition_xfs() -> Result<()> {
        live(&[PARTITION_XFS], 2)
    }

    #[test]
    fn directory_ext4() -> Result<()> {
        live(&[DIRECTORY_EXT4], 2)
    }

    #[test]
    fn directory_xfs() -> Result<()> {
        live(&[DIRECTORY_XFS], 2)
    }
}
