//! What the guest does between its init and the runner: the second half of its boot, written for each machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::kernel::Kernel;
use crate::paths;

/// What must be writable in the guest; the host's files there are hidden.
const WRITABLE: [&str; 5] = ["/tmp", "/var/tmp", "/var/lib", "/var/log", "/mnt"];

const SCRIPT: &str = r#"
export PATH=/run/rig/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mkdir /run/host /run/lock /run/etc-lvm
mount --bind / /run/host
for path in $WRITABLE; do
  [ -d "$path" ] && mount -t tmpfs -o mode=1777 tmpfs "$path"
done
cp -a /etc/lvm/. /run/etc-lvm/ && mount --bind /run/etc-lvm /etc/lvm
mount --bind "/run/host$MODULES" /lib/modules
# The clone and what was built from it, where one of the above hides them.
for path in "$REPOSITORY" "$TARGET"; do
  [ -e "$path" ] || { mkdir -p "$path" && mount --bind "/run/host$path" "$path"; }
done
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
hostname gabion-rig
echo 30 >/proc/sys/kernel/hung_task_timeout_secs
modprobe -a virtio_blk virtio_scsi sd_mod nvme virtio_console dm-mod loop
for udevd in /usr/lib/systemd/systemd-udevd /lib/systemd/systemd-udevd /sbin/udevd; do
  [ -x "$udevd" ] && break
done
"$udevd" --daemon
udevadm trigger --action=add --subsystem-match=block --subsystem-match=misc --subsystem-match=virtio-ports
udevadm settle --timeout=30
gabion-guest </dev/null
echo "rig: the runner ended with $?" >/dev/console
echo o >/proc/sysrq-trigger
sleep 60
"#;

/// Fills the share that the guest sees at /run/rig: the boot script, and the programs in bin.
pub fn stage(share: &Path, kernel: &Kernel, programs: &BTreeMap<String, PathBuf>) -> Result<()> {
    let script = share.join("boot.sh");
    fs::write(&script, boot_script(kernel)?).with_context(|| format!("writing {}", script.display()))?;
    let bin = share.join("bin");
    if bin.exists() {
        // Of an earlier machine of this process. Copying over a link would destroy what it links to.
        fs::remove_dir_all(&bin).with_context(|| format!("removing {}", bin.display()))?;
    }
    fs::create_dir_all(&bin).with_context(|| format!("making {}", bin.display()))?;
    for (name, program) in programs {
        let place = bin.join(name);
        // Linked where that is possible: test binaries are large.
        if fs::hard_link(program, &place).is_err() {
            fs::copy(program, &place)
                .with_context(|| format!("copying {} to {}", program.display(), place.display()))?;
        }
    }
    Ok(())
}

fn boot_script(kernel: &Kernel) -> Result<String> {
    let variables = [
        ("MODULES", kernel.modules.display().to_string()),
        ("REPOSITORY", paths::repository()?.display().to_string()),
        ("TARGET", paths::target()?.display().to_string()),
        ("WRITABLE", WRITABLE.join(" ")),
    ];
    let lines = variables.map(|(name, value)| format!("{name}={}\n", quoted(&value)));
    Ok(lines.concat() + SCRIPT)
}

/// A word for the shell, whatever it holds.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_survive_being_staged_twice() {
        let directory = std::env::temp_dir().join(format!("rig-stage-{}", std::process::id()));
        let share = directory.join("share");
        fs::create_dir_all(&share).unwrap();
        let program = directory.join("program");
        fs::write(&program, "content").unwrap();
        let kernel = Kernel {
            release: "6.1".into(),
            machine: crate::kernel::MachineKind::Qemu,
            image: "/boot/vmlinuz".into(),
            modules: "/lib/modules".into(),
            initramfs: None,
        };
        let programs = BTreeMap::from([("program".to_owned(), program.clone())]);
        stage(&share, &kernel, &programs).unwrap();
        stage(&share, &kernel, &programs).unwrap();
        let (kept, staged) = (fs::read(&program).unwrap(), fs::read(share.join("bin/program")).unwrap());
        let script = fs::read_to_string(share.join("boot.sh")).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((kept.as_slice(), staged.as_slice()), (b"content".as_slice(), b"content".as_slice()));
        assert!(script.starts_with("MODULES='/lib/modules'\n"));
    }

    #[test]
    fn a_quote_in_a_path_stays_in_the_word() {
        assert_eq!(quoted("a'b $c"), r"'a'\''b $c'");
    }
}
