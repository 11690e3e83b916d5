//! Room that is promised in volume groups and thin pools: the largest volume can be made, one extent more cannot.
//!
//! One kind of pool and one layout of disks, by chance; `soak_volumes_capacity` looks at many of each.

use anyhow::Result;
use devices::Bytes;
use rig::power_cut::Random;
use rig::room::{LINEAR, Layout, RAIDS, STRIPED, THIN, THIN_RAIDS, kept};
use rig::skip_unless_dm;
use volumes::{CreateVolume, SizeRange};

#[test]
fn what_a_class_promises_can_be_had_and_no_more() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let mut random = Random::new(Random::seed());
    let one = |of: &[&'static str], random: &mut Random| -> Result<&'static str> {
        Ok(of[usize::try_from(random.below(of.len() as u64))?])
    };
    // Each family has the same chance.
    let families: [&[&'static str]; 5] = [&[LINEAR], &[STRIPED], &[THIN], &RAIDS, &THIN_RAIDS];
    let family = families[usize::try_from(random.below(5))?];
    let kind = one(family, &mut random)?;
    let layout = Layout::random(&mut random, kind, 100);
    println!("{layout:?}");
    let lab = layout.lab()?;
    let size = SizeRange::at_least(Bytes::mib(16 + random.below(48)));
    lab.node().create(&CreateVolume::new("first".parse()?, size))?;
    kept(&lab)?;
    Ok(lab.node().delete(&"first".parse()?)?)
}
