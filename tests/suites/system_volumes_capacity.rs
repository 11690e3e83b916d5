//! Room that is promised in volume groups and thin pools: the largest volume can be made, one extent more cannot.
//!
//! One kind of pool and one layout of disks, by chance; `soak_volumes_capacity` looks at many of each.

use anyhow::Result;
use devices::Bytes;
use rig::power_cut::Random;
use rig::room::{LINEAR, Layout, STRIPED, THIN, kept};
use rig::skip_unless_dm;
use volumes::{CreateVolume, SizeRange};

#[test]
fn what_a_class_promises_can_be_had_and_no_more() -> Result<()> {
    if skip_unless_dm() {
        return Ok(());
    }
    let mut random = Random::new(Random::seed());
    let kind = [LINEAR, STRIPED, THIN][usize::try_from(random.below(3))?];
    let layout = Layout::random(&mut random, kind, 100);
    println!("{layout:?}");
    let lab = layout.lab()?;
    let size = SizeRange::at_least(Bytes::mib(16 + random.below(48)));
    lab.node().create(&CreateVolume::new("first".parse()?, size))?;
    kept(&lab)?;
    Ok(lab.node().delete(&"first".parse()?)?)
}
