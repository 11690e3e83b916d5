//! The driver over its socket against the commands that do the same, and the memory that it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume};
use csi::proto::{self, VolumeCapability};
use devices::Bytes;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::{Disk, Footprint};

use crate::changes::settle;
use crate::reads::VOLUMES;
use crate::report::{Memory, Report, Side};
use crate::rounds::{Samples, by_turns, timed};
use crate::site::{program, spawn};

/// Size of the volumes that are made.
const SIZE: i64 = 64 << 20;
/// Size of the sparse disks that they are on.
const DISK: Bytes = Bytes::gib(20);
const SECTOR: Bytes = Bytes::new(512);
/// How long workers rest before they end, and a little.
const REST: Duration = Duration::from_secs(35);
/// How long it may take until so many volumes are active.
const ACTIVATION: Duration = Duration::from_secs(600);
/// Where the agent writes the configurations of its workers.
const CONFIGURATIONS: &str = "/run/gabion/lvm";

/// Measures all of it, on disks that nobody else uses.
pub(crate) fn run(report: &mut Report, budget: Duration) -> Result<()> {
    if rig::skip_unless_dm() {
        return Ok(());
    }
    with_few(report, Disk::partitioned(DISK, SECTOR)?.path(), budget * 3)?;
    if std::env::var("GABION_MACHINE").is_ok_and(|machine| machine == "uml") {
        with_many(report, Disk::partitioned(DISK, SECTOR)?.path(), budget)?;
    } else {
        println!("left out: the driver at {VOLUMES} volumes, which are active; it runs with --machine uml");
    }
    Ok(())
}

fn class(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n"
    )
}

/// Making and deleting volumes and snapshots.
fn with_few(report: &mut Report, disk: &Path, budget: Duration) -> Result<()> {
    let thin = class(
        "thin",
        &format!("devices: {{paths: [{}]}}, pool: {{thin: {{sizePercent: 50}}}}", disk.display()),
    );
    let thick = class("thick", "devices: {sharedWith: thin}, pool: {lvm: {}}");
    let mut agent = Agent::start(&format!("{thin}---\n{thick}"), &[])?;
    let driver = Driver::connect(&agent)?;
    let theirs = Lvm::of_agent()?;
    std::thread::sleep(REST);
    report.memory(Memory::new("the agent at rest", Footprint::of(agent.pid())?));
    let linear =
        "lvcreate --yes --type linear --extents 16 --wipesignatures y --zero y --name theirs gabion-thin";
    let virtual_ = "lvcreate --yes --type thin --virtualsize 64m --thinpool pool --name theirs gabion-thin";
    for (kind, class, create) in [("thick", "thick", linear), ("thin", "thin", virtual_)] {
        let ours = || pair(&mut || driver.create("ours", class), &mut || driver.delete("ours"));
        let spawned =
            || pair(&mut || theirs.run(create), &mut || theirs.run("lvremove --yes gabion-thin/theirs"));
        let samples = by_turns(budget, &mut [Box::new(ours), Box::new(spawned)])?;
        compare(report, &format!("CreateVolume, DeleteVolume, {kind}"), "lvcreate, lvremove", &samples);
    }
    driver.create("source", "thin")?;
    let ours = || pair(&mut || driver.cut("source", "cut"), &mut || driver.drop_cut("cut"));
    let cut = "lvcreate --yes --snapshot --name theirs gabion-thin/v.source";
    let spawned = || pair(&mut || theirs.run(cut), &mut || theirs.run("lvremove --yes gabion-thin/theirs"));
    let samples = by_turns(budget, &mut [Box::new(ours), Box::new(spawned)])?;
    compare(report, "CreateSnapshot, DeleteSnapshot, thin", "lvcreate -s, lvremove", &samples);
    report.memory(Memory::new("the agent after changes, with its workers", Footprint::of(agent.pid())?));
    driver.delete("source")?;
    let _ = agent.stop()?;
    theirs.run("vgchange --activate n gabion-thin")
}

/// Reading 1,000 volumes.
fn with_many(report: &mut Report, disk: &Path, budget: Duration) -> Result<()> {
    let text = class("many", &format!("devices: {{paths: [{}]}}, pool: {{lvm: {{}}}}", disk.display()));
    let mut agent = Agent::start(&text, &[])?;
    let theirs = Lvm::of_agent()?;
    let _ = agent.stop()?;
    let directory = agent.directory().to_owned();
    let tags = ["gabion.dev/owner=rig", "gabion.dev/class=many"];
    rig::fleet::fill_tagged(|words| theirs.words(words), &directory, "gabion-many", 1, VOLUMES, &tags)?;
    let agent = Agent::start(&text, &[])?;
    let driver = Driver::connect(&agent)?;
    // It serves before they are.
    rig::eventually("all volumes are active", ACTIVATION, || agent.log().contains("activated"));
    let listed =
        || Ok(vec![("list", timed(|| driver.list())?), ("room", timed(|| driver.capacity("many"))?)]);
    let fields = "lv_name,lv_uuid,lv_tags,lv_size,segtype,origin,pool_lv";
    let lvs = format!("lvs --reportformat json --units b --nosuffix -o {fields} gabion-many");
    let vgs = "vgs --reportformat json --units b --nosuffix -o vg_size,vg_free,vg_extent_size gabion-many";
    let spawned = || Ok(vec![("list", timed(|| theirs.run(&lvs))?), ("room", timed(|| theirs.run(vgs))?)]);
    let samples = by_turns(budget, &mut [Box::new(listed), Box::new(spawned)])?;
    let [ours, their] = samples.as_slice() else { return Ok(()) };
    for (step, call, verb) in [("list", "ListVolumes", "lvs"), ("room", "GetCapacity", "vgs")] {
        let side = |samples: &Samples| Side::new(samples.get(step), None);
        let _ = report.compare(&format!("{call} at {VOLUMES} volumes"), verb, side(ours), side(their));
    }
    report.memory(Memory::new(
        &format!("the agent at {VOLUMES} volumes, with its workers"),
        Footprint::of(agent.pid())?,
    ));
    std::thread::sleep(REST);
    report.memory(Memory::new(&format!("the agent at {VOLUMES} volumes"), Footprint::of(agent.pid())?));
    drop(agent);
    theirs.run("vgchange --activate n gabion-many")
}

/// One creation and one deletion as one sample: that is what a volume costs.
fn pair(
    create: &mut dyn FnMut() -> Result<()>,
    delete: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<(&'static str, Duration)>> {
    settle()?;
    let made = timed(create)?;
    settle()?;
    Ok(vec![("create", made), ("delete", timed(delete)?)])
}

fn compare(report: &mut Report, name: &str, against: &str, samples: &[Samples]) {
    let both = |samples: &Samples| -> Vec<Duration> {
        let of = |step| samples.get(step).map_or(&[][..], Vec::as_slice);
        of("create").iter().zip(of("delete")).map(|(create, delete)| *create + *delete).collect()
    };
    if let [ours, theirs] = samples {
        let side = |samples: &Samples| Side::new(Some(&both(samples)), None);
        let _ = report.compare(name, against, side(ours), side(theirs));
    }
}

/// The driver's calls.
struct Driver(Csi);

impl Driver {
    fn connect(agent: &Agent) -> Result<Self> {
        Ok(Self(Csi::connect(&agent.socket())?))
    }

    fn create(&self, name: &str, class: &str) -> Result<()> {
        let request = proto::CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(proto::CapacityRange { required_bytes: SIZE, limit_bytes: 0 }),
            volume_capabilities: vec![VolumeCapability {
                access_mode: Some(AccessMode { mode: 1 }),
                access_type: Some(AccessType::Block(BlockVolume {})),
            }],
            parameters: parameters(class),
            ..Default::default()
        };
        Ok(self.0.wait(self.0.controller().create_volume(request)).map(drop)?)
    }

    fn delete(&self, id: &str) -> Result<()> {
        let request = proto::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
        Ok(self.0.wait(self.0.controller().delete_volume(request)).map(drop)?)
    }

    fn cut(&self, source: &str, name: &str) -> Result<()> {
        let request = proto::CreateSnapshotRequest {
            source_volume_id: source.into(),
            name: name.into(),
            ..Default::default()
        };
        Ok(self.0.wait(self.0.controller().create_snapshot(request)).map(drop)?)
    }

    fn drop_cut(&self, id: &str) -> Result<()> {
        let request = proto::DeleteSnapshotRequest { snapshot_id: id.into(), ..Default::default() };
        Ok(self.0.wait(self.0.controller().delete_snapshot(request)).map(drop)?)
    }

    fn list(&self) -> Result<()> {
        let answer = self.0.wait(self.0.controller().list_volumes(proto::ListVolumesRequest::default()))?;
        anyhow::ensure!(answer.entries.len() == VOLUMES, "{} volumes are listed", answer.entries.len());
        Ok(())
    }

    fn capacity(&self, class: &str) -> Result<()> {
        let request = proto::GetCapacityRequest { parameters: parameters(class), ..Default::default() };
        Ok(self.0.wait(self.0.controller().get_capacity(request)).map(drop)?)
    }
}

fn parameters(class: &str) -> std::collections::BTreeMap<String, String> {
    [(csi::names::DEVICE_CLASS.to_owned(), class.to_owned())].into()
}

/// LVM's own command, which sees what the agent's workers see.
struct Lvm(PathBuf);

impl Lvm {
    /// With the configuration that the agent wrote last.
    fn of_agent() -> Result<Self> {
        let mut found = Vec::new();
        for entry in fs::read_dir(CONFIGURATIONS).context("look for the configuration of the workers")? {
            let path = entry?.path();
            if let Ok(there) = fs::metadata(path.join("lvm.conf")) {
                found.push((there.modified()?, path));
            }
        }
        let newest = found.into_iter().max().context("the agent wrote no configuration")?;
        Ok(Self(newest.1))
    }

    fn words(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(program("lvm")?);
        command.env_clear().env("LVM_SYSTEM_DIR", &self.0).env("LC_ALL", "C");
        command.env("LVM_SUPPRESS_FD_WARNINGS", "1").args(words);
        spawn(&mut command).map(drop)
    }

    fn run(&self, line: &str) -> Result<()> {
        self.words(&line.split_whitespace().collect::<Vec<_>>())
    }
}
