//! The guest's kernel: the distribution's own package, unpacked into the cache and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::initramfs;
use crate::paths;
use crate::tool::{capture, run};
use crate::vmlinux;

/// What the guest runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MachineKind {
    /// An emulated computer with the distribution's own kernel: disks can be unplugged and can fail
    #[default]
    Qemu,
    /// User-mode Linux, another kernel as a process of this host: several times faster, without hot-plug
    Uml,
}

/// An unpacked kernel with its modules and, for the emulator, an initramfs.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its release, such as 6.1.0-57-amd64.
    pub release: String,
    /// What it runs on.
    pub machine: MachineKind,
    /// What the emulator starts: the plain kernel where that is possible, else the compressed one. User-mode Linux: the
    /// program.
    pub image: PathBuf,
    /// The directory that becomes /lib/modules.
    pub modules: PathBuf,
    /// What it boots into; user-mode Linux begins in the host's own root instead.
    pub initramfs: Option<PathBuf>,
}

impl Kernel {
    /// The kernel in the cache, if there is one; its initramfs is made anew when this program makes another one.
    pub fn cached() -> Result<Option<Self>> {
        let root = root()?;
        let Ok(release) = fs::read_to_string(root.join("release")) else { return Ok(None) };
        let kernel = Kernel::below(&root, release.trim());
        if !kernel.image.exists() || !kernel.modules.join(&kernel.release).join("modules.dep").exists() {
            return Ok(None);
        }
        kernel.complete().map(Some)
    }

    /// Fetches the newest kernel package of this distribution.
    pub fn fetch() -> Result<Self> {
        let root = root()?;
        let fresh = root.with_extension("new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh).with_context(|| format!("removing {}", fresh.display()))?;
        }
        fs::create_dir_all(&fresh).with_context(|| format!("making {}", fresh.display()))?;
        for package in packages()? {
            unpack(&package, &fresh)?;
        }
        let release = release_in(&fresh.join("boot"))?;
        let image = Kernel::below(&fresh, &release).image;
        ensure!(image.exists(), "the kernel packages hold no {}", image.display());
        // The package's installation script would do this.
        run(Command::new("depmod").arg("-b").arg(merged(&fresh)).arg(&release))?;
        fs::write(fresh.join("release"), &release).context("noting the kernel's release")?;
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("removing the old {}", root.display()))?;
        }
        fs::rename(&fresh, &root).with_context(|| format!("moving the kernel to {}", root.display()))?;
        Kernel::below(&root, &release).complete()
    }

    /// Adds what this program makes of the packages, where it is missing or old.
    fn complete(mut self) -> Result<Self> {
        initramfs::ensure(&self)?;
        let boot = self.image.parent().context("the kernel lies nowhere")?;
        let (plain, config) = (boot.join("vmlinux"), boot.join(format!("config-{}", self.release)));
        if plain.exists() || vmlinux::extract(&self.image, &config, &plain)? {
            self.image = plain;
        }
        Ok(self)
    }

    fn below(root: &Path, release: &str) -> Self {
        Kernel {
            release: release.to_owned(),
            machine: MachineKind::Qemu,
            image: root.join(format!("boot/vmlinuz-{release}")),
            modules: merged(root).join("lib/modules"),
            initramfs: Some(root.join("initramfs.cpio")),
        }
    }
}

fn root() -> Result<PathBuf> {
    Ok(paths::cache()?.join("kernel"))
}

/// Newer packages put their modules below /usr/lib.
fn merged(root: &Path) -> PathBuf {
    if root.join("lib/modules").exists() { root.to_owned() } else { root.join("usr") }
}

fn release_in(boot: &Path) -> Result<String> {
    let entries = fs::read_dir(boot).with_context(|| format!("reading {}", boot.display()))?;
    entries
        .flatten()
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("vmlinuz-").map(str::to_owned))
        .with_context(|| format!("{} holds no vmlinuz", boot.display()))
}

/// The packages that the distribution's kernel meta package stands for today.
fn packages() -> Result<Vec<String>> {
    let system = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let is = |name: &str| system.lines().any(|line| line.trim_end() == format!("ID={name}"));
    let meta = if is("debian") {
        "linux-image-amd64"
    } else if is("ubuntu") {
        "linux-image-generic"
    } else {
        bail!("this is neither Debian nor Ubuntu: only their kernel packages are known")
    };
    let depends = capture(Command::new("apt-cache").args(["depends", meta]))?;
    let image = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .with_context(|| format!("{meta} depends on no linux-image; run apt-get update and try again"))?;
    let mut packages = vec![image.to_owned()];
    if is("ubuntu") {
        let release = image.trim_start_matches("linux-image-");
        packages.extend(["modules", "modules-extra"].map(|kind| format!("linux-{kind}-{release}")));
    }
    Ok(packages)
}

pub(crate) fn unpack(package: &str, into: &Path) -> Result<()> {
    eprintln!("rig: fetching {package}");
    run(Command::new("apt-get").args(["download", "-q", package]).current_dir(into))?;
    let debs = fs::read_dir(into).with_context(|| format!("reading {}", into.display()))?;
    let deb = debs
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|suffix| suffix == "deb"))
        .with_context(|| format!("apt-get download left no package file for {package}"))?;
    run(Command::new("dpkg").arg("-x").arg(&deb).arg(into))?;
    fs::remove_file(&deb).with_context(|| format!("removing {}", deb.display()))
}
