//! The emulator's process: its command line, its sockets, and the question whether KVM works here.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::initramfs::FIRST_LINE;
use crate::kernel::Kernel;
use crate::paths;
use crate::virtual_disk::{Bus, VirtualDisk};

/// How soon init must speak for KVM to count as working: some hosts have a /dev/kvm that hangs.
const KVM_PATIENCE: Duration = Duration::from_secs(10);

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's processor.
    Kvm,
    /// The emulator, 10 to 20 times slower.
    Emulation,
}

/// The directory of a running machine: sockets, shares and logs.
#[derive(Debug, Clone)]
pub struct RunDir(pub PathBuf);

impl RunDir {
    /// Where the guest's runner speaks.
    pub fn runner_socket(&self) -> PathBuf {
        self.0.join("runner.sock")
    }
    /// Where the emulator takes orders.
    pub fn qmp_socket(&self) -> PathBuf {
        self.0.join("qmp.sock")
    }
    /// The interactive terminal.
    pub fn terminal_socket(&self) -> PathBuf {
        self.0.join("terminal.sock")
    }
    /// The guest's console.
    pub fn console_log(&self) -> PathBuf {
        self.0.join("console.log")
    }
    /// What the emulator itself complains about.
    pub fn emulator_log(&self) -> PathBuf {
        self.0.join("emulator.log")
    }
    /// What the guest sees at /run/rig, read-only.
    pub fn share(&self) -> PathBuf {
        self.0.join("share")
    }
    /// What the guest sees at /run/out, writable.
    pub fn out(&self) -> PathBuf {
        self.0.join("out")
    }
}

/// The emulator, killed when this value is dropped or this process ends.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
}

impl Emulator {
    /// Starts the emulator; its sockets appear a moment later.
    ///
    /// # Errors
    /// When a stale socket cannot be removed or the program cannot be started.
    pub fn start(kernel: &Kernel, run: &RunDir, disks: &[VirtualDisk], with: Accelerator) -> Result<Self> {
        for socket in [run.runner_socket(), run.qmp_socket(), run.terminal_socket(), run.console_log()] {
            if socket.exists() {
                fs::remove_file(&socket).with_context(|| format!("removing the old {}", socket.display()))?;
            }
        }
        let log = run.emulator_log();
        let stderr = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        // Builds that run beside must not starve an emulated machine into time-outs; only root may ask for that.
        let nice = if rustix::process::geteuid().is_root() { "-10" } else { "0" };
        let mut command = Command::new("nice");
        command
            .args(["-n", nice, "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(arguments(kernel, run, disks, with))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        Emulator::spawn(&mut command).context("starting qemu-system-x86_64 under nice and setpriv")
    }

    /// Starts a program that is the machine.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        Ok(Emulator { child: command.spawn()? })
    }

    /// Ends the machine as a power cut does.
    pub fn kill(&mut self) {
        // It may have ended by itself: the aim is reached then, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether the emulator still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.kill();
    }
}

fn arguments(kernel: &Kernel, run: &RunDir, disks: &[VirtualDisk], with: Accelerator) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| words.extend([format!("-{name}"), value]);
    match with {
        Accelerator::Kvm => add("accel", "kvm".into()),
        Accelerator::Emulation => add("accel", "tcg,thread=multi".into()),
    }
    add("cpu", "max".into());
    add("smp", "2".into());
    add("m", "4G".into());
    add("display", "none".into());
    add("rtc", "base=utc".into());
    add("kernel", text(&kernel.image));
    if let Some(initramfs) = &kernel.initramfs {
        add("initrd", text(initramfs));
    }
    // On a busy host the emulated timer can be late enough for the kernel's check of it to fail and to panic.
    // A kernel that panics or oopses ends the emulator, which the host notices at once.
    let quiet = "console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off random.trust_cpu=on";
    add("append", format!("{quiet} tsc=reliable no_timer_check net.ifnames=0"));
    add("serial", format!("file:{}", text(&run.console_log())));
    let share = |path: &Path, tag: &str, options: &str| {
        let path = text(path).replace(',', ",,");
        format!("local,path={path},mount_tag={tag},security_model=none,multidevs=remap{options}")
    };
    add("virtfs", share(Path::new("/"), "host", ",readonly=on"));
    add("virtfs", share(&run.share(), "rig", ",readonly=on"));
    add("virtfs", share(&run.out(), "out", ""));
    let socket = |path: &Path, id: &str| format!("socket,id={id},path={},server=on,wait=off", text(path));
    add("device", "virtio-serial-pci".into());
    add("chardev", socket(&run.runner_socket(), "runner"));
    add("device", format!("virtserialport,chardev=runner,name={}", guest::protocol::PORT));
    add("chardev", socket(&run.terminal_socket(), "terminal"));
    add("device", "virtconsole,chardev=terminal".into());
    add("qmp", format!("unix:{},server=on,wait=off", text(&run.qmp_socket())));
    if disks.iter().any(|disk| disk.bus == Bus::Scsi) {
        add("device", "virtio-scsi-pci,id=scsi".into());
        // An empty CD drive, which every real host has in one form or another.
        add("device", "scsi-cd,id=cdrom,bus=scsi.0".into());
    }
    for disk in disks {
        add("blockdev", disk.backend().to_string());
        add("device", disk.frontend().to_string());
    }
    words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
    words
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Connects to a socket that the emulator makes while it starts.
pub fn connect(socket: &Path) -> Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(_) if start.elapsed() < Duration::from_secs(10) => sleep(Duration::from_millis(20)),
            Err(error) => return Err(error).with_context(|| format!("connecting to {}", socket.display())),
        }
    }
}

/// Finds out whether KVM works here, by trying it; the answer is kept until the host boots again.
pub fn accelerator(kernel: &Kernel, run: &RunDir) -> Result<Accelerator> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(Accelerator::Emulation);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").context("reading the host's boot id")?;
    let known = paths::cache()?.join("kvm");
    if let Some((of, answer)) = fs::read_to_string(&known).unwrap_or_default().split_once(' ')
        && of == boot.trim()
    {
        return Ok(if answer == "works" { Accelerator::Kvm } else { Accelerator::Emulation });
    }
    eprintln!("rig: trying whether KVM works here (once until the host boots again)");
    let works = kvm_works(kernel, run)?;
    let answer = if works { "works" } else { "hangs" };
    eprintln!("rig: KVM {answer}{}", if works { "" } else { ": the machine is emulated" });
    fs::write(&known, format!("{} {answer}", boot.trim()))
        .with_context(|| format!("noting the answer in {}", known.display()))?;
    Ok(if works { Accelerator::Kvm } else { Accelerator::Emulation })
}

fn kvm_works(kernel: &Kernel, run: &RunDir) -> Result<bool> {
    let mut emulator = Emulator::start(kernel, run, &[], Accelerator::Kvm)?;
    let start = Instant::now();
    while start.elapsed() < KVM_PATIENCE && emulator.is_running() {
        if fs::read_to_string(run.console_log()).is_ok_and(|log| log.contains(FIRST_LINE)) {
            return Ok(true);
        }
        sleep(Duration::from_millis(100));
    }
    Ok(false)
}

/// Says why the emulator ended at once, if it did.
pub fn check_started(emulator: &mut Emulator, run: &RunDir) -> Result<()> {
    sleep(Duration::from_millis(50));
    if emulator.is_running() {
        return Ok(());
    }
    let said = fs::read_to_string(run.emulator_log()).unwrap_or_default();
    bail!("the emulator ended at once: {}", said.trim())
}
