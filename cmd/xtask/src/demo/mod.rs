//! `cargo xtask demo`: what Gabion does, shown on real disks of a disposable machine in a few minutes.
//!
//! [`steps`] says what is done and what must come of it; [`play`] does it and compares.

mod play;
mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::built;
use crate::kernel::MachineKind;
use crate::lock::Lock;
use crate::machine::{Machine, MachineSpec};
use crate::setup;
use crate::virtual_disk::{Bus, DiskSpec};

use play::Player;
use steps::STEPS;

/// Disks of the demonstration; they can be pulled out without asking the guest.
const DISKS: DiskSpec = DiskSpec { count: 4, bytes: 4 << 30, bus: Bus::Scsi };

/// What a person at the screen is told to expect.
const PROMISE: Duration = Duration::from_secs(5 * 60);

/// What `cargo xtask demo` takes: nothing.
#[derive(Debug, Args)]
pub struct Arguments {}

/// Plays every step; fails at the first one that is not as told.
pub fn run(_: &Arguments) -> Result<ExitCode> {
    let kernel = setup::ready(MachineKind::Qemu)?;
    let programs = built::guest_programs()?;
    let lock = Lock::take(MachineKind::Qemu)?;
    let begun = Instant::now();
    println!("Everything below happens in a disposable machine; this host's disks are not touched.");
    println!("Lines with a $ are typed in that machine, and every change of storage goes through gabion.");
    println!("\n[{:6.1} s] Boot a machine with four empty disks of 4 GiB", 0.0);
    let mut machine = Machine::boot(&lock, &kernel, &MachineSpec { disks: vec![DISKS], programs })?;
    let (release, uptime) = machine.booted();
    println!("           Linux {release} is ready after {:.1} s of its own time", uptime.as_secs_f64());
    let mut player = Player::new(&mut machine, begun);
    for step in STEPS {
        player.play(step)?;
    }
    let took = begun.elapsed();
    println!(
        "\n{} steps, {} claims checked, all as told, in {:.0} s.",
        STEPS.len(),
        player.checked(),
        took.as_secs_f64()
    );
    if took > PROMISE {
        println!("(It should take less than {} s; this host is busy or slow.)", PROMISE.as_secs());
    }
    Ok(ExitCode::SUCCESS)
}
