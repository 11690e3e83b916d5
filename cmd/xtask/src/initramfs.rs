//! The guest's first file system: busybox, the few modules that reach the host's root, and an init.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::kernel::Kernel;
use crate::tool::put;

/// What init says first: its appearance on the console shows that the accelerator works.
pub const FIRST_LINE: &str = "rig: init runs";

/// Modules that must be there before the host's root can be mounted; all others come from that root.
const MODULES: [&str; 3] = ["virtio_pci", "9p", "9pnet_virtio"];

const INIT: &str = r#"#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
$b echo "rig: init runs" >/dev/console
for module in $($b cat /modules/order); do $b insmod /modules/$module || $b echo "rig: no $module" >/dev/console; done
share() { $b mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,$3 $1 $2; }
share host /root ro,cache=loose || $b echo "rig: the host's root cannot be mounted" >/dev/console
$b mount -t tmpfs -o mode=755 tmpfs /root/run
$b mkdir /root/run/rig /root/run/out
share rig /root/run/rig ro,cache=loose
share out /root/run/out rw,cache=none
$b mount --move /proc /root/proc
$b mount --move /sys /root/sys
$b mount --move /dev /root/dev
exec $b switch_root /root /bin/sh /run/rig/boot.sh
"#;

/// Makes the kernel's initramfs unless the very same one is there.
pub fn ensure(kernel: &Kernel) -> Result<()> {
    let inputs = format!("{INIT}\n{MODULES:?}\n{}\n", kernel.release);
    let Some(path) = &kernel.initramfs else { return Ok(()) };
    let stamp = path.with_extension("inputs");
    if path.exists() && fs::read_to_string(&stamp).is_ok_and(|last| last == inputs) {
        return Ok(());
    }
    let archive = build(&kernel.modules.join(&kernel.release))?;
    put(path, &archive)?;
    put(&stamp, inputs.as_bytes())
}

fn build(modules: &Path) -> Result<Vec<u8>> {
    let busybox =
        fs::read("/bin/busybox").context("reading /bin/busybox; the package busybox-static has it")?;
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "modules", "proc", "root", "sys"] {
        archive.add(directory, DIRECTORY | 0o755, (0, 0), &[]);
    }
    archive.add("dev/console", CHARACTER_DEVICE | 0o600, (5, 1), &[]);
    archive.add("bin/busybox", REGULAR | 0o755, (0, 0), &busybox);
    archive.add("init", REGULAR | 0o755, (0, 0), INIT.as_bytes());
    let mut order = Vec::new();
    for path in load_order(modules)? {
        let name = plain_name(&path).context("a module without a name")?;
        archive.add(
            &format!("modules/{name}"),
            REGULAR | 0o644,
            (0, 0),
            &decompressed(&modules.join(&path))?,
        );
        order.push(name);
    }
    archive.add("modules/order", REGULAR | 0o644, (0, 0), order.join("\n").as_bytes());
    Ok(archive.finish())
}

/// The modules' files in the order in which they must be loaded, built-in ones left out.
fn load_order(modules: &Path) -> Result<Vec<PathBuf>> {
    let read = |name: &str| {
        let path = modules.join(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let (dependencies, builtin) = (read("modules.dep")?, read("modules.builtin")?);
    let mut order: Vec<PathBuf> = Vec::new();
    for wanted in MODULES {
        let named =
            |path: &str| plain_name(Path::new(path)).is_some_and(|name| name == format!("{wanted}.ko"));
        if builtin.lines().any(named) {
            continue;
        }
        let Some((path, needs)) =
            dependencies.lines().filter_map(|line| line.split_once(':')).find(|(path, _)| named(path))
        else {
            bail!("the kernel in {} has no module {wanted}", modules.display());
        };
        // modules.dep lists what is needed with the last-to-load first.
        for path in needs.split_whitespace().rev().chain([path]) {
            if !order.iter().any(|known| known == Path::new(path)) {
                order.push(path.into());
            }
        }
    }
    Ok(order)
}

/// `virtio_pci.ko` of `kernel/drivers/virtio/virtio_pci.ko.xz`.
fn plain_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let end = name.find(".ko")?;
    Some(format!("{}.ko", name[..end].replace('-', "_")))
}

fn decompressed(path: &Path) -> Result<Vec<u8>> {
    let program = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path).with_context(|| format!("reading {}", path.display())),
    };
    let output = Command::new(program).arg("-dc").arg(path).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting {program} for {}", path.display()))?;
    if !output.status.success() {
        bail!("{program} cannot decompress {}: {}", path.display(), output.status);
    }
    Ok(output.stdout)
}

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// A cpio archive of the "newc" format (kernel: Documentation/driver-api/early-userspace/buffer-format.rst).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: usize,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let fields = [self.entries, mode as usize, 0, 0, 1, 0, content.len(), 0, 0].into_iter().chain([
            device.0 as usize,
            device.1 as usize,
            name.len() + 1,
            0,
        ]);
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_says_the_line_that_the_boot_waits_for() {
        assert!(INIT.contains(FIRST_LINE));
    }

    #[test]
    fn an_entry_has_a_header_of_110_bytes_and_padded_parts() {
        let mut archive = Archive::default();
        archive.add("init", REGULAR | 0o755, (0, 0), b"hello");
        assert_eq!(archive.bytes.len(), (110 + 5_usize).next_multiple_of(4) + 8);
        assert_eq!(&archive.bytes[54..62], b"00000005");
    }

    #[test]
    fn compressed_and_dashed_modules_have_the_same_plain_name() {
        assert_eq!(plain_name(Path::new("kernel/a/dm-mod.ko.xz")).unwrap(), "dm_mod.ko");
        assert_eq!(plain_name(Path::new("kernel/a/9p.ko")).unwrap(), "9p.ko");
    }

    #[test]
    fn modules_load_after_what_they_need() {
        let directory = std::env::temp_dir().join(format!("rig-order-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let dependencies = "k/virtio_pci.ko: k/ring.ko\nk/9p.ko: k/9pnet.ko k/netfs.ko k/fscache.ko\nk/9pnet.ko:\n\
                            k/9pnet_virtio.ko.xz: k/9pnet.ko k/ring.ko\n";
        fs::write(directory.join("modules.dep"), dependencies).unwrap();
        fs::write(directory.join("modules.builtin"), "k/virtio_pci.ko\n").unwrap();
        let order = load_order(&directory).unwrap();
        let order: Vec<_> = order.iter().map(|path| path.to_str().unwrap()).collect();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(
            order,
            ["k/fscache.ko", "k/netfs.ko", "k/9pnet.ko", "k/9p.ko", "k/ring.ko", "k/9pnet_virtio.ko.xz"]
        );
    }
}
