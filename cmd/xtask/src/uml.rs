//! User-mode Linux: the distribution's other kernel, as a process of this host.
//!
//! It begins in the host's own root, through hostfs, in mount and process namespaces of its own: all mounts but the run
//! directory are read-only there, so that no test can harm the host, and nothing of it outlives its first process. It
//! has one processor, disks that stay where they are, and no interactive terminal; in exchange it is several times
//! faster than an emulated computer, and it may run beside one.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::boot::quoted;
use crate::kernel::{Kernel, MachineKind, unpack};
use crate::paths;
use crate::qemu::{Emulator, RunDir};
use crate::virtual_disk::VirtualDisk;

/// The package that holds the program and its modules.
const PACKAGE: &str = "user-mode-linux";

/// Where the guest finds the port to its host: the first serial line, which is our socket.
pub const PORT: &str = "/dev/ttyS0";

/// Run by the host's shell in the new namespaces: `sh -c SCRIPT sh RUN-DIRECTORY PROGRAM ARGUMENT…`.
///
/// The shell stays the first process there: user-mode Linux ends itself by signals, which a first process would not get.
const NAMESPACE: &str = r#"
set -e
run=$1; shift
mount --make-rprivate /
mount --bind "$run" "$run"
# The kernel writes blanks as \040, and printf wants a nought before all three digits.
sed 's/\\\([0-7]\{3\}\)/\\0\1/g' /proc/self/mounts | while read -r _ at _; do
  at=$(printf '%b' "$at")
  # A mount whose place was deleted cannot be reached, and so needs no protection.
  [ "$at" = "$run" ] || [ ! -e "$at" ] || mount -o remount,bind,ro "$at"
done
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
TMPDIR=/dev/shm "$@" || exit 1
"#;

/// The guest's first process. The boot script that both kinds of machine share comes after it.
const INIT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo "rig: init runs" >/dev/console
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/rig /run/out
mount -t hostfs none /run/rig -o "$SHARE" && mount -o remount,ro /run/rig
mount -t hostfs none /run/out -o "$OUT"
export GABION_PORT
exec /bin/sh /run/rig/boot.sh
"#;

/// The unpacked package in the cache, if it is there.
///
/// # Errors
/// When the cache cannot be used.
pub fn cached() -> Result<Option<Kernel>> {
    let root = root()?;
    Ok(kernel_below(&root).filter(|kernel| kernel.image.exists()))
}

/// Fetches the package and unpacks it into the cache; nothing is installed.
///
/// # Errors
/// When it cannot be fetched, or does not hold what it should.
pub fn fetch() -> Result<Kernel> {
    let root = root()?;
    let fresh = root.with_extension("new");
    for stale in [&fresh, &root] {
        if stale.exists() {
            fs::remove_dir_all(stale).with_context(|| format!("removing {}", stale.display()))?;
        }
    }
    fs::create_dir_all(&fresh).with_context(|| format!("making {}", fresh.display()))?;
    unpack(PACKAGE, &fresh)?;
    fs::rename(&fresh, &root).with_context(|| format!("moving {PACKAGE} to {}", root.display()))?;
    cached()?.with_context(|| format!("{PACKAGE} holds no linux.uml with modules"))
}

fn root() -> Result<PathBuf> {
    Ok(paths::cache()?.join("uml"))
}

fn kernel_below(root: &Path) -> Option<Kernel> {
    let modules = root.join("usr/lib/uml/modules");
    let releases = fs::read_dir(&modules).ok()?.flatten();
    let release = releases
        .filter(|entry| entry.path().join("modules.dep").exists())
        .find_map(|entry| entry.file_name().into_string().ok())?;
    let image = root.join("usr/bin/linux.uml");
    Some(Kernel { release, machine: MachineKind::Uml, image, modules, initramfs: None })
}

/// Starts the machine; the other end of its port comes with it.
///
/// # Errors
/// When this process may not make namespaces, or a program cannot be started.
pub fn start(kernel: &Kernel, run: &RunDir, disks: &[VirtualDisk]) -> Result<(Emulator, UnixStream)> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "user-mode Linux needs root here: it gets mounts of its own"
    );
    write_init(run)?;
    let path = run.console_log();
    let console = File::create(&path).with_context(|| format!("making {}", path.display()))?;
    let complaints = console.try_clone().context("sharing the console's file")?;
    let (ours, theirs) = UnixStream::pair().context("making the runner's port")?;
    let mut command = Command::new("setpriv");
    command
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .args(["sh", "-c", NAMESPACE, "sh"])
        .arg(&run.0)
        .arg(&kernel.image)
        .args(arguments(run, disks)?)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(console)
        .stderr(complaints);
    let emulator =
        Emulator::spawn(&mut command).context("starting user-mode Linux under setpriv and unshare")?;
    Ok((emulator, ours))
}

fn write_init(run: &RunDir) -> Result<()> {
    let path = init_path(run);
    let variables = [
        ("SHARE", run.share().display().to_string()),
        ("OUT", run.out().display().to_string()),
        ("GABION_PORT", PORT.to_owned()),
    ];
    let variables = variables.map(|(name, value)| format!("{name}={}\n", quoted(&value))).concat();
    let made = fs::write(&path, format!("#!/bin/sh\n{variables}{INIT}"))
        .and_then(|()| fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)));
    made.with_context(|| format!("writing {}", path.display()))
}

fn init_path(run: &RunDir) -> PathBuf {
    run.share().join("init.sh")
}

fn arguments(run: &RunDir, disks: &[VirtualDisk]) -> Result<Vec<String>> {
    let mut words: Vec<String> =
        "mem=3G root=none rootfstype=hostfs rootflags=/ ro loglevel=5 panic=-1 oops=panic \
                                  con=null con0=null,fd:1 ssl=null ssl0=fd:0"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    words.push(format!("init={}", init_path(run).display()));
    words.extend(disks.iter().map(|disk| format!("ubd{}={}", disk.index, disk.file().display())));
    let blank = words.iter().find(|word| word.contains(char::is_whitespace));
    ensure!(blank.is_none(), "user-mode Linux takes no blanks in paths: {blank:?}");
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_named_by_the_directory_that_has_its_modules() {
        let root = std::env::temp_dir().join(format!("rig-uml-{}", std::process::id()));
        assert!(kernel_below(&root).is_none());
        fs::create_dir_all(root.join("usr/lib/uml/modules/6.1.0")).unwrap();
        assert!(kernel_below(&root).is_none());
        fs::write(root.join("usr/lib/uml/modules/6.1.0/modules.dep"), "").unwrap();
        let kernel = kernel_below(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.machine), ("6.1.0", MachineKind::Uml));
    }

    #[test]
    fn a_path_with_a_blank_is_refused_before_the_start() {
        assert!(arguments(&RunDir("/a b".into()), &[]).is_err());
        assert!(arguments(&RunDir("/a".into()), &[]).unwrap().contains(&"init=/a/share/init.sh".to_owned()));
    }
}
