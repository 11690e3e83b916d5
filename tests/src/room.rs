//! Room that is promised: the largest volume of a class can be made, and one that is a step larger cannot.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use devices::Bytes;
use volumes::{Capacity, CreateVolume, Kind, SizeRange, VolumeId};

use crate::expect::eventually;
use crate::node::NodeLab;
use crate::power_cut::Random;

/// A pool of linear volumes.
pub const LINEAR: &str = "{lvm: {}}";
/// A pool of striped volumes.
pub const STRIPED: &str = "{lvm: {layout: {striped: {stripes: STRIPES}}}}";
/// A pool of thin volumes that may promise twice what it has.
pub const THIN: &str = "{thin: {overprovisionRatio: 2}}";

/// Pools of volumes with redundancy, one for each level.
pub const RAIDS: [&str; 5] = [
    "{lvm: {layout: {raid: {level: 1}}}}",
    "{lvm: {layout: {raid: {level: 1, mirrors: 2}}}}",
    "{lvm: {layout: {raid: {level: 5}}}}",
    "{lvm: {layout: {raid: {level: 6}}}}",
    "{lvm: {layout: {raid: {level: 10}}}}",
];
/// Pools of thin volumes on data and metadata with redundancy.
pub const THIN_RAIDS: [&str; 4] = [
    "{thin: {overprovisionRatio: 2, layout: {raid: {level: 1}}}}",
    "{thin: {overprovisionRatio: 2, sizePercent: 70, layout: {raid: {level: 5}}}}",
    "{thin: {overprovisionRatio: 2, layout: {raid: {level: 6}}}}",
    "{thin: {overprovisionRatio: 2, layout: {raid: {level: 10}}}}",
];

/// The fewest disks on which a pool can be made.
fn fewest(pool: &str) -> u64 {
    let legs = [
        ("STRIPES", 2),
        ("mirrors: 2", 3),
        ("level: 10", 4),
        ("level: 1", 2),
        ("level: 5", 3),
        ("level: 6", 5),
    ];
    legs.iter().find(|(part, _)| pool.contains(part)).map_or(1, |(_, legs)| *legs)
}

/// A pool and the disks below it, by chance.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The sizes of the disks.
    pub disks: Vec<Bytes>,
    /// The text of the class.
    pub class: String,
}

impl Layout {
    /// As many disks as the pool takes and up to four, or one more, of `least` MiB to four times that, a pool of this text,
    /// now and then with a reserve. `STRIPES` in the text becomes two up to the number of the disks.
    pub fn random(random: &mut Random, pool: &str, least: u64) -> Self {
        let fewest = fewest(pool);
        let count = fewest + random.below(5_u64.saturating_sub(fewest).max(2));
        // Sizes that are no whole extents, too.
        let disk = |random: &mut Random| Bytes::new((least << 20) + random.below(3 * least * 2048) * 512);
        let disks: Vec<Bytes> = (0..count).map(|_| disk(random)).collect();
        let paths: Vec<String> = (0..count).map(|at| format!("DISK{at}")).collect();
        let stripes = 2 + random.below(count.saturating_sub(1));
        let pool = pool.replace("STRIPES", &stripes.to_string());
        let reserve = ["\"0\"", "\"5%\"", "37Mi"][usize::try_from(random.below(3)).unwrap_or_default()];
        let class = format!(
            "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: lab}}, spec: {{default: true, \
             devices: {{paths: [{}]}}, reserve: {reserve}, pool: {pool}}}}}",
            paths.join(", ")
        );
        Self { disks, class }
    }

    /// A node with these disks and the class.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn lab(&self) -> Result<NodeLab> {
        NodeLab::of_sizes(&self.disks, &self.class)
    }
}

fn at_least(size: Bytes) -> SizeRange {
    SizeRange::at_least(size)
}

/// Makes the largest volume that is promised now, and is refused one that is a step larger; what was made goes again.
///
/// # Errors
///
/// If a promise is not kept, or was too small.
pub fn kept(lab: &NodeLab) -> Result<()> {
    let room = lab.node().capacity(None)?;
    ensure!(room.largest <= room.available && room.available <= room.total, "{room:?}");
    let probe: VolumeId = "probe".parse()?;
    // A byte more is a whole step more.
    let more = room.largest.checked_add(Bytes::new(1)).context("overflow")?.max(room.minimum);
    match lab.node().create(&CreateVolume::new(probe.clone(), at_least(more))) {
        Err(error) if error.kind() == Kind::NoSpace => {}
        other => anyhow::bail!("{room:?}: {more:#} should be too much: {other:?}"),
    }
    if room.largest == Bytes::ZERO {
        return Ok(());
    }
    let new = CreateVolume::new(probe.clone(), at_least(room.largest).up_to(room.largest));
    let made = lab.node().create(&new).with_context(|| format!("promised was {room:?}"))?;
    ensure!(made.size == room.largest, "{room:?}: made was {made:?}");
    lab.node().delete(&probe)?;
    eventually("the room is what it was", Duration::from_secs(30), || is_back(lab, &room));
    Ok(())
}

/// Whether the room is what it was. A filesystem keeps some blocks for the directories that were in it.
fn is_back(lab: &NodeLab, was: &Capacity) -> bool {
    let slack = if lab.disks.is_empty() { Bytes::mib(1) } else { Bytes::ZERO };
    lab.node().capacity(None).is_ok_and(|is| {
        was.available.saturating_sub(is.available) <= slack
            && is.available.saturating_sub(was.available) <= slack
    })
}

/// Makes, grows and removes volumes at random, and looks at the promise in between; all go at the end.
///
/// # Errors
///
/// If a promise is not kept.
pub fn churn(lab: &NodeLab, random: &mut Random, rounds: u64) -> Result<()> {
    kept(lab).context("of the empty pool")?;
    let mut there: Vec<VolumeId> = Vec::new();
    for round in 0..rounds {
        for step in 0..1 + random.below(3) {
            let room = lab.node().capacity(None)?.largest;
            let size = Bytes::new(16 << 20).max(Bytes::new(random.below(room.get() / 2 + 1)));
            let at = usize::try_from(random.below(there.len() as u64)).unwrap_or_default();
            match random.below(4) {
                0 if !there.is_empty() => lab.node().delete(&there.swap_remove(at))?,
                1 if !there.is_empty() => {
                    let has = lab.node().volume(&there[at])?.size;
                    let wanted = has.checked_add(Bytes::new(random.below(48 << 20))).unwrap_or(has);
                    no_space(lab.node().grow(&there[at], at_least(wanted)).map(drop))?;
                }
                _ => {
                    let id: VolumeId = format!("v{round}-{step}").parse()?;
                    if no_space(lab.node().create(&CreateVolume::new(id.clone(), at_least(size))).map(drop))?
                    {
                        there.push(id);
                    }
                }
            }
        }
        kept(lab).with_context(|| format!("round {round}, {} volumes", there.len()))?;
    }
    for volume in lab.node().volumes()? {
        lab.node().delete(&volume.id)?;
    }
    Ok(())
}

/// Whether it was done; no room is no failure here.
fn no_space(done: Result<(), volumes::Error>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == Kind::NoSpace => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// So many layouts of one kind of pool on disks of `least` MiB and more, each from a seed of its own.
///
/// # Errors
///
/// If a promise is not kept, with the layout.
pub fn layouts(pool: &str, least: u64, seed: u64, count: u64, rounds: u64) -> Result<()> {
    for number in 0..count {
        let mut random = Random::new(seed.wrapping_add(number));
        let layout = Layout::random(&mut random, pool, least);
        let told = || format!("GABION_SEED={}: {layout:?}", seed.wrapping_add(number));
        let lab = layout.lab().with_context(told)?;
        churn(&lab, &mut random, rounds).with_context(told)?;
    }
    println!("FIGURES: {count} layouts of {pool}, {} promises kept", count * (rounds + 1));
    Ok(())
}
