//! Whether this host has what the work needs.

use std::path::{Path, PathBuf};

use super::{Finding, Severity};
use crate::host::Host;
use crate::live::Kernel;

/// Targets of device-mapper that volumes need, and the module that brings each.
const TARGETS: [(&str, &str, &str); 3] = [
    ("thin-pool", "dm-thin-pool", "thin pools and their snapshots"),
    ("raid", "dm-raid", "RAID volumes"),
    ("snapshot", "dm-snapshot", "snapshots of thick volumes"),
];
/// Where programs of the system lie, whatever `PATH` says.
const PROGRAM_DIRS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What there is on this host.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// Targets that the kernel has loaded.
    pub(crate) targets: Vec<String>,
    /// Modules that it could load, as their lists name them.
    pub(crate) modules: String,
    /// `thin_check`.
    pub(crate) thin_check: Option<PathBuf>,
    /// The worker, or why it cannot be started.
    pub(crate) worker: Result<PathBuf, String>,
}

impl System {
    /// Looks at this host.
    pub(crate) fn look() -> Self {
        let targets = lvm::dm::Dm::open().and_then(|dm| dm.targets()).unwrap_or_default();
        Self {
            targets: targets.into_iter().map(|target| target.name).collect(),
            modules: modules().unwrap_or_default(),
            thin_check: PROGRAM_DIRS
                .iter()
                .map(|dir| Path::new(dir).join("thin_check"))
                .find(|path| path.exists()),
            worker: worker(),
        }
    }

    fn can(&self, target: &str, module: &str) -> bool {
        // The lists write a hyphen or an underscore as the module's file has it.
        let file = |name: &str| self.modules.contains(&format!("/{name}.ko"));
        self.targets.iter().any(|loaded| loaded == target) || file(module) || file(&module.replace('-', "_"))
    }
}

/// Where the worker is.
fn worker() -> Result<PathBuf, String> {
    let path = lvm::worker::find::find(None).map_err(|error| error.to_string())?;
    if path.is_file() { Ok(path) } else { Err(format!("there is no program {}", path.display())) }
}

/// The modules of the running kernel, loadable and built in.
fn modules() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let dir = Path::new("/lib/modules").join(release.trim());
    let list = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    Some(list("modules.dep") + &list("modules.builtin"))
}

/// Everything about this host.
pub(super) fn examine(system: &System, host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    let subject = "this host";
    match &host.live.kernel {
        Kernel::Present => findings.extend(targets(system)),
        Kernel::Absent => findings.push(
            Finding::new(Severity::Warning, "no-device-mapper", subject, "the kernel has no device-mapper")
                .meaning("No volume can be used; groups can be read.")
                .step("modprobe dm-mod"),
        ),
        Kernel::Silent(why) => findings.push(
            Finding::new(Severity::Warning, "kernel-silent", subject, why.clone())
                .meaning("Which volumes are active, their fill and health are not known.")
                .step("run this as root"),
        ),
    }
    if let Err(why) = &system.worker {
        findings.push(
            Finding::new(Severity::Warning, "no-worker", subject, why.clone())
                .meaning("Groups and volumes can be shown and not changed.")
                .step("install gabion-lvm-worker beside gabion, or name it in GABION_LVM_WORKER"),
        );
    }
    let thin = host.view.vgs.iter().any(|vg| vg.thin_pools().next().is_some());
    if system.thin_check.is_none() {
        let severity = if thin { Severity::Error } else { Severity::Note };
        findings.push(
            Finding::new(severity, "no-thin-check", subject, "thin_check is not installed")
                .meaning("Thin pools cannot be activated: LVM checks their metadata with it first.")
                .step("apt-get install thin-provisioning-tools (or device-mapper-persistent-data)"),
        );
    }
    findings
}

fn targets(system: &System) -> Vec<Finding> {
    TARGETS
        .into_iter()
        .filter(|(target, module, _)| !system.can(target, module))
        .map(|(_, module, what)| {
            Finding::new(Severity::Note, "no-module", "this host", format!("this kernel has no {module}"))
                .meaning(format!("It cannot run {what}."))
        })
        .collect()
}
