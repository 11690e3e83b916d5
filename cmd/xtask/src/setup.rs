//! `cargo xtask setup`: what the rig needs from the distribution.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::termios::isatty;

use crate::kernel::{Kernel, MachineKind};
use crate::tool::{exists, run as run_tool};
use crate::uml;

/// A package and a file that shows that it is there.
struct Need {
    package: &'static str,
    /// A program's name, or a path.
    shown_by: &'static str,
}

const fn need(package: &'static str, shown_by: &'static str) -> Need {
    Need { package, shown_by }
}

const NEEDS: [Need; 25] = [
    need("qemu-system-x86", "qemu-system-x86_64"),
    need("busybox-static", "/bin/busybox"),
    need("lvm2", "lvm"),
    need("dmsetup", "dmsetup"),
    need("liblvm2-dev", "/usr/include/lvm2cmd.h"),
    need("libdevmapper-dev", "/usr/include/libdevmapper.h"),
    need("thin-provisioning-tools", "thin_check"),
    need("udev", "udevadm"),
    need("kmod", "depmod"),
    need("util-linux", "setpriv"),
    need("mount", "losetup"),
    need("e2fsprogs", "mkfs.ext4"),
    need("xfsprogs", "mkfs.xfs"),
    need("btrfs-progs", "mkfs.btrfs"),
    need("bcache-tools", "make-bcache"),
    need("gdisk", "sgdisk"),
    // Measures what a cache is good for.
    need("fio", "fio"),
    need("strace", "strace"),
    // Ends what a test holds up; small Debians come without it.
    need("procps", "pkill"),
    need("xz-utils", "xz"),
    need("zstd", "zstd"),
    // Looking at what is on a disk: libblkid, and libclang for its bindings, which are made while it is built.
    need("libblkid-dev", "/usr/include/blkid/blkid.h"),
    need("libclang-dev", "/usr/share/doc/libclang-dev"),
    need("gcc", "cc"),
    need("pkg-config", "pkg-config"),
];

/// What `cargo xtask setup` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Only say what is missing; end with 1 if anything is
    #[arg(long, conflicts_with = "yes")]
    check: bool,
    /// Fetch the newest kernel even if there is one
    #[arg(long)]
    new_kernel: bool,
    /// Fetch user-mode Linux too, for `--machine uml`
    #[arg(long)]
    uml: bool,
}

/// Installs what is missing and fetches the guest's kernel.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let missing = missing();
    let kernel = Kernel::cached();
    let wants_kernel = arguments.new_kernel || !matches!(kernel, Ok(Some(_)));
    if arguments.check {
        for package in &missing {
            println!("missing: the package {package}");
        }
        if wants_kernel {
            println!("missing: the guest's kernel");
        }
        let wants_uml = arguments.uml && uml::cached()?.is_none();
        if wants_uml {
            println!("missing: user-mode Linux");
        }
        return Ok(ExitCode::from(u8::from(!missing.is_empty() || wants_kernel || wants_uml)));
    }
    let kernel = bring(&missing, wants_kernel, arguments.yes)?;
    println!("setup: everything is here; the guest's kernel is Linux {}", kernel.release);
    if arguments.uml {
        let kernel = if arguments.new_kernel { uml::fetch()? } else { user_mode()? };
        println!("setup: user-mode Linux is Linux {}", kernel.release);
    }
    Ok(ExitCode::SUCCESS)
}

/// What every command of the rig begins with: nothing when all is there, else the same as `cargo xtask setup`.
pub fn ready(machine: MachineKind) -> Result<Kernel> {
    let emulated = ready_to_emulate()?;
    match machine {
        MachineKind::Qemu => Ok(emulated),
        MachineKind::Uml => user_mode(),
    }
}

/// User-mode Linux from the cache, or fetched into it: nothing is installed.
fn user_mode() -> Result<Kernel> {
    if let Some(kernel) = uml::cached()? {
        return Ok(kernel);
    }
    uml::fetch().or_else(|_| {
        apt(&["update", "-q"])?;
        uml::fetch().context("fetching user-mode Linux")
    })
}

fn ready_to_emulate() -> Result<Kernel> {
    let missing = missing();
    if missing.is_empty()
        && let Some(kernel) = Kernel::cached()?
    {
        return Ok(kernel);
    }
    let wants_kernel = !missing.is_empty() || Kernel::cached()?.is_none();
    bring(&missing, wants_kernel, false)
}

fn missing() -> Vec<&'static str> {
    let there = |what: &str| if what.starts_with('/') { Path::new(what).exists() } else { exists(what) };
    NEEDS.iter().filter(|need| !there(need.shown_by)).map(|need| need.package).collect()
}

fn bring(missing: &[&str], wants_kernel: bool, agreed: bool) -> Result<Kernel> {
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "setup knows only Debian and Ubuntu (apt-get); install by hand what gives: {}",
            NEEDS.map(|need| need.shown_by).join(", ")
        );
    }
    let modules = Path::new("/lib/modules");
    let mut acts: Vec<String> = Vec::new();
    if !missing.is_empty() {
        acts.push(format!("install these packages with apt-get: {}", missing.join(" ")));
    }
    if !modules.exists() {
        acts.push("make the empty directory /lib/modules, where the guest sees its own modules".into());
    }
    if wants_kernel {
        acts.push(
            "fetch the distribution's kernel package into the rig's cache (nothing is installed)".into(),
        );
    }
    for act in &acts {
        eprintln!("setup: will {act}");
    }
    if !acts.is_empty() && !agreed && !confirmed()? {
        bail!("setup was not agreed to");
    }
    if !missing.is_empty() {
        apt(&["update", "-q"])?;
        apt(&[&["install", "-q", "-y", "--no-install-recommends"], missing].concat())?;
    }
    if !modules.exists() {
        run_tool(privileged("mkdir").args(["-p", "/lib/modules"]))?;
    }
    match Kernel::cached()? {
        Some(kernel) if !wants_kernel => Ok(kernel),
        _ => Kernel::fetch().or_else(|_| {
            // The package lists may be older than the archive.
            apt(&["update", "-q"])?;
            Kernel::fetch().context("fetching the guest's kernel")
        }),
    }
}

/// Asks only where a person can answer.
fn confirmed() -> Result<bool> {
    if std::env::var_os("CI").is_some() || !isatty(std::io::stdin()) || !isatty(std::io::stderr()) {
        return Ok(true);
    }
    eprint!("setup: go on? [Y/n] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

fn apt(arguments: &[&str]) -> Result<()> {
    run_tool(privileged("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// The program as root: directly, or through sudo.
fn privileged(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["DEBIAN_FRONTEND=noninteractive", program]);
    command
}

/// Whether this process may use loop devices: root, and a kernel that has them.
pub fn loop_devices() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("not root".into());
    }
    fs::metadata("/dev/loop-control").map(drop).map_err(|_| "this kernel has no loop devices".into())
}
