//! `gabion doctor`: what is wrong, what it means, and what to do.

mod difference;
mod group;
mod pool;
mod problem;
mod system;
mod volume;

use std::collections::HashMap;
use std::fmt::Write as _;

use lvm::dm::Dm;
use lvm::metadata::Vg;
use lvm::recover::Difference;
use lvm::{Error, Uuid};
use serde::Serialize;

use crate::exit::Exit;
use crate::host::Host;
use crate::live::Kernel;
use crate::output::Output;

pub(crate) use system::System;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    /// Data cannot be reached, are less safe than they should be, or will soon not be writable.
    Error,
    /// It works, and should be looked after.
    Warning,
    /// Worth knowing.
    Note,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// A lasting word for programs: `pv-missing`.
    pub(crate) code: &'static str,
    /// What it is about: `group data`, `volume data/db`, `/dev/sdb`, `this host`.
    pub(crate) subject: String,
    /// What is wrong.
    pub(crate) problem: String,
    /// What that means for the data or the work.
    pub(crate) meaning: String,
    /// What to do, a step each; commands as they are to be typed.
    pub(crate) remedy: Vec<String>,
}

impl Finding {
    fn new(
        severity: Severity,
        code: &'static str,
        subject: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            code,
            subject: subject.into(),
            problem: problem.into(),
            meaning: String::new(),
            remedy: Vec::new(),
        }
    }

    fn meaning(mut self, meaning: impl Into<String>) -> Self {
        self.meaning = meaning.into();
        self
    }

    fn step(mut self, step: impl Into<String>) -> Self {
        self.remedy.push(step.into());
        self
    }

    fn steps(mut self, steps: Vec<String>) -> Self {
        self.remedy.extend(steps);
        self
    }
}

#[derive(Serialize)]
struct Body {
    /// Whether there is a finding of severity `error`.
    degraded: bool,
    groups: usize,
    findings: Vec<Finding>,
}

/// Where the kernel differs from the committed metadata, by group.
pub(crate) type Differences = HashMap<Uuid, Vec<Difference>>;

/// Compares all groups with the kernel; nothing is found where it cannot be asked, which is a finding of its own.
pub(crate) fn compare(host: &Host) -> Result<Differences, Error> {
    if host.live.kernel != Kernel::Present {
        return Ok(Differences::new());
    }
    let dm = Dm::open()?;
    let of = |vg: &Vg| Ok((vg.uuid, lvm::recover::compare(vg, &lvm::recover::live_devices(&dm, &vg.uuid)?)));
    host.view.vgs.iter().map(|vg| of(vg)).collect()
}

/// Looks at everything, the worst first.
pub(crate) fn examine(host: &Host, system: &System, differences: &Differences) -> Vec<Finding> {
    let mut findings = system::examine(system, host);
    findings.extend(host.view.problems.iter().map(|found| problem::explain(host, found)));
    for vg in &host.view.vgs {
        findings.extend(group::examine(vg));
        let differences = differences.get(&vg.uuid).into_iter().flatten();
        findings.extend(differences.map(|difference| difference::explain(vg, difference)));
        for lv in &vg.lvs {
            findings.extend(volume::examine(host, vg, lv));
            findings.extend(pool::examine(host, vg, lv));
        }
    }
    findings.sort_by(|a, b| a.severity.cmp(&b.severity).then_with(|| a.subject.cmp(&b.subject)));
    findings
}

/// Examines this host and tells what was found; degraded when an error is among it.
pub(crate) fn show(
    host: &Host,
    system: &System,
    differences: &Differences,
    output: &mut Output<'_>,
) -> anyhow::Result<Exit> {
    let findings = examine(host, system, differences);
    let degraded = findings.iter().any(|finding| finding.severity == Severity::Error);
    let groups = host.view.vgs.len();
    let body = Body { degraded, groups, findings };
    output.show(&body, |body, _| for_people(&body.findings, body.groups))?;
    Ok(if degraded { Exit::Degraded } else { Exit::Ok })
}

fn for_people(findings: &[Finding], groups: usize) -> String {
    let mut text = String::new();
    for finding in findings {
        let word = match finding.severity {
            Severity::Error => "ERROR  ",
            Severity::Warning => "WARNING",
            Severity::Note => "NOTE   ",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word}  {}: {}", finding.subject, finding.problem);
        if !finding.meaning.is_empty() {
            let _ = writeln!(text, "         {}", finding.meaning);
        }
        for step in &finding.remedy {
            let _ = writeln!(text, "         → {step}");
        }
        text.push('\n');
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let summary = match (count(Severity::Error), count(Severity::Warning), count(Severity::Note)) {
        (0, 0, 0) => "nothing is wrong".to_owned(),
        (errors, warnings, notes) => [(errors, "error"), (warnings, "warning"), (notes, "note")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| counted(count, word))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let _ = writeln!(text, "{} examined: {summary}.", counted(groups, "group"));
    text
}

/// `1 group`, `2 groups`.
fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use lvm::metadata::Problem;

    use super::*;
    use crate::fixture::{host, host_at_rest, host_with};
    use crate::output::Format;
    use crate::output::Units;

    const MODULES: &str = "kernel/dm-thin-pool.ko: kernel/dm_raid.ko: kernel/dm-snapshot.ko:";

    fn able() -> System {
        System {
            targets: Vec::new(),
            modules: MODULES.replace("kernel/", "kernel/drivers/md/"),
            thin_check: Some(PathBuf::from("/usr/sbin/thin_check")),
            worker: Ok(PathBuf::from("/usr/libexec/gabion/gabion-lvm-worker")),
        }
    }

    fn codes(host: &Host) -> Vec<(Severity, &'static str, String)> {
        let findings = examine(host, &able(), &Differences::new());
        findings.into_iter().map(|finding| (finding.severity, finding.code, finding.subject)).collect()
    }

    /// The one finding of this code.
    fn finding(host: &Host, code: &str) -> Finding {
        let mut found =
            examine(host, &able(), &Differences::new()).into_iter().filter(|finding| finding.code == code);
        let first = found.next();
        first.unwrap_or_else(|| panic!("{code} is not among {:?}", codes(host)))
    }

    #[test]
    fn a_healthy_group_has_only_its_unfinished_volume_against_it() {
        let unfinished = (Severity::Warning, "unfinished-volumes", "group data".to_owned());
        assert_eq!(codes(&host()), [unfinished]);
    }

    #[test]
    fn the_worst_comes_first_and_makes_the_exit_code() {
        let dead = host_with(&[], &[("raid1 2 AA 131072", "raid1 2 AD 131072")]);
        let mut written = Vec::new();
        let mut output = Output::new(Format::Table, Units::Human, &mut written);
        assert_eq!(show(&dead, &able(), &Differences::new(), &mut output).unwrap(), Exit::Degraded);
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "\
ERROR    volume data/mirror: 1 of its 2 legs does not work any more (leg 1)
         The data are served from the other legs; another failing disk can cost them.
         → gabion volume refresh data/mirror

WARNING  group data: half-made volumes are left: half
         They are being made at this moment, or their making was cut off; they hold nobody's data.
         → if nothing is being made now: gabion group recover data

1 group examined: 1 error, 1 warning.
"
        );
        let mut written = Vec::new();
        let mut output = Output::new(Format::Json, Units::Human, &mut written);
        assert_eq!(show(&host(), &able(), &Differences::new(), &mut output).unwrap(), Exit::Ok);
        let document: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!((document["degraded"].as_bool(), document["groups"].as_u64()), (Some(false), Some(1)));
        let first = &document["findings"][0];
        assert_eq!(
            (first["severity"].as_str(), first["code"].as_str()),
            (Some("warning"), Some("unfinished-volumes"))
        );
        assert_eq!(first["remedy"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn every_trouble_that_the_kernel_tells_is_found() {
        let pool = "thin-pool 2 221/2048 1600/4096 - rw discard_passdown queue_if_no_space -";
        let said = |text: &str| text.replace("POOL", "discard_passdown queue_if_no_space");
        for (from, to, code, severity) in [
            (pool, said("thin-pool 2 221/2048 3277/4096 - rw POOL -"), "pool-data", Severity::Warning),
            (pool, said("thin-pool 2 221/2048 3892/4096 - rw POOL -"), "pool-data", Severity::Error),
            (pool, said("thin-pool 2 1639/2048 1600/4096 - rw POOL -"), "pool-metadata", Severity::Warning),
            (pool, said("thin-pool 2 1946/2048 1600/4096 - rw POOL -"), "pool-metadata", Severity::Error),
            (
                pool,
                said("thin-pool 2 221/2048 1600/4096 - ro POOL needs_check"),
                "pool-needs-check",
                Severity::Error,
            ),
            (pool, said("thin-pool 2 221/2048 1600/4096 - ro POOL -"), "pool-read-only", Severity::Error),
            (
                pool,
                said("thin-pool 2 221/2048 1600/4096 - out_of_data_space POOL -"),
                "pool-out-of-space",
                Severity::Error,
            ),
            (pool, said("thin-pool 2 221/2048 1600/4096 7 rw POOL -"), "pool-metadata-held", Severity::Note),
            ("raid1 2 AA 131072", "raid1 2 -A 131072".to_owned(), "raid-degraded", Severity::Error),
            (
                "AA 131072/131072 idle 0",
                "AA 131072/131072 idle 8".to_owned(),
                "raid-mismatches",
                Severity::Warning,
            ),
            ("AA 131072/131072 idle", "Aa 8/131072 recover".to_owned(), "raid-syncing", Severity::Note),
            (
                "snapshot 16/65536 16",
                "snapshot 52429/65536 16".to_owned(),
                "snapshot-nearly-full",
                Severity::Warning,
            ),
            (
                "snapshot 16/65536 16",
                "snapshot 62260/65536 16".to_owned(),
                "snapshot-nearly-full",
                Severity::Error,
            ),
            ("snapshot 16/65536 16", "snapshot Overflow".to_owned(), "snapshot-lost", Severity::Error),
            (pool, "thin-pool Fail".to_owned(), "pool-failed", Severity::Error),
        ] {
            // A short pool line must not keep the rest of the longer one.
            let kernel = [(from, to.as_str())];
            let rest = [("thin-pool Fail 512 ", "thin-pool Fail")];
            let kernel: Vec<_> =
                if to == "thin-pool Fail" { [&kernel[..], &rest[..]].concat() } else { kernel.to_vec() };
            assert_eq!(finding(&host_with(&[], &kernel), code).severity, severity, "{to}");
        }
    }

    #[test]
    fn what_the_kernel_does_otherwise_than_committed_is_told_with_the_way_back() {
        let host = host();
        let device = || "data-plain".to_owned();
        for (difference, code, severity) in [
            (Difference::Suspended { device: device() }, "device-suspended", Severity::Error),
            (Difference::InactiveTable { device: device() }, "inactive-table", Severity::Warning),
            (Difference::Orphan { device: device(), open_count: 0 }, "live-not-committed", Severity::Error),
            (Difference::NoTable { device: device() }, "live-not-committed", Severity::Warning),
            (
                Difference::Transaction { pool: "pool".parse().unwrap(), committed: 2, live: 1 },
                "pool-transaction",
                Severity::Error,
            ),
        ] {
            let differences = Differences::from([(host.view.vgs[0].uuid, vec![difference.clone()])]);
            let found = examine(&host, &able(), &differences);
            let finding = found.iter().find(|finding| finding.code == code).unwrap();
            assert_eq!((finding.severity, &finding.problem), (severity, &difference.to_string()));
            assert!(finding.remedy.concat().ends_with("gabion group recover data"), "{finding:?}");
        }
    }

    #[test]
    fn a_missing_disk_says_what_cannot_be_read_and_what_has_lost_its_spare_copy() {
        let mut host = host();
        let view = Arc::make_mut(&mut host.view);
        let (vg, pv) = (view.vgs[0].uuid, view.vgs[0].pvs[1].uuid);
        std::sync::Arc::make_mut(&mut view.vgs[0]).pvs[1].device = None;
        view.problems.push(Problem::MissingPv { vg, pv, hint: Some("/dev/vdb".into()) });
        let found = finding(&host, "pv-missing");
        assert_eq!((found.severity, found.subject.as_str()), (Severity::Error, "group data"));
        assert!(found.problem.ends_with("is missing, last seen on /dev/vdb"), "{}", found.problem);
        let part = host_with(&[], &[("raid1 2 AA 16384", "raid1 2 AD 16384")]);
        let part = finding(&part, "raid-degraded");
        assert_eq!(part.subject, "volume data/rdata_tmeta");
        assert_eq!(part.remedy, ["lvchange --refresh data/rdata"]);
        assert_eq!(
            found.meaning,
            "Cannot be read without it: wide. Without a spare copy now: mirror, par, rdata."
        );
        assert_eq!(finding(&host, "volume-partial").subject, "volume data/wide");
    }

    #[test]
    fn every_problem_of_the_reader_is_explained() {
        let host = host();
        let (vg, pv, device) =
            (host.view.vgs[0].uuid, host.view.vgs[0].pvs[0].uuid, PathBuf::from("/dev/vda"));
        let (small, large) = (devices::Bytes::gib(2), devices::Bytes::gib(3));
        for (problem, code, step) in [
            (
                Problem::FlaggedMissing { vg, pv, device: device.clone() },
                "pv-not-restored",
                "gabion group restore data",
            ),
            (
                Problem::DeviceGrew { pv, device: device.clone(), recorded: small, actual: large },
                "device-grew",
                "gabion group resize data",
            ),
            (
                Problem::DeviceShrank { pv, device: device.clone(), recorded: large, actual: small },
                "device-shrank",
                "former size",
            ),
            (
                Problem::DuplicatePv { pv, used: device.clone(), other: "/dev/vdz".into() },
                "pv-duplicate",
                "/dev/vdz",
            ),
            (
                Problem::SameName { name: "data".parse().unwrap(), vgs: vec![vg] },
                "group-name-twice",
                "vgrename",
            ),
            (Problem::Suspended { device: device.clone() }, "device-suspended", "dmsetup resume"),
            (
                Problem::OutdatedCopy { device: device.clone(), vg, seqno: 1, newest: 2 },
                "metadata-outdated",
                "data",
            ),
            (Problem::DifferingCopies { device: device.clone(), vg, seqno: 1 }, "metadata-differs", "pvck"),
            (Problem::GroupNotFound { pv, device }, "group-not-found", "other disks"),
        ] {
            let found = problem::explain(&host, &problem);
            assert_eq!(found.code, code);
            assert!(!found.meaning.is_empty() && found.remedy.concat().contains(step), "{found:?}");
        }
    }

    #[test]
    fn what_this_host_lacks_is_told() {
        let bare = System {
            thin_check: None,
            modules: String::new(),
            targets: vec!["raid".to_owned()],
            worker: Err("there is no program".to_owned()),
        };
        let host = host();
        let found: Vec<_> = examine(&host, &bare, &Differences::new())
            .into_iter()
            .map(|finding| (finding.code, finding.problem))
            .collect();
        let has = |code: &str, word: &str| {
            found.iter().any(|(own, problem)| *own == code && problem.contains(word))
        };
        assert!(
            has("no-worker", "no program")
                && has("no-thin-check", "thin_check")
                && has("no-module", "dm-thin-pool")
                && has("no-module", "dm-snapshot")
        );
        assert!(!has("no-module", "dm-raid"));
        assert_eq!(finding(&host_at_rest(), "no-device-mapper").severity, Severity::Warning);
    }
}
