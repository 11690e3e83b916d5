//! csi-sanity, the test suite for CSI drivers of the Kubernetes project, run against a socket.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What volumes are used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessType {
    /// Filesystems.
    Mount,
    /// Block devices.
    Block,
}

impl AccessType {
    /// The word that csi-sanity has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Block => "block",
        }
    }
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It did not run.
    Skipped,
    /// It failed.
    Failed,
}

/// What one run of csi-sanity gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every test by its full name.
    pub tests: Vec<(String, Outcome)>,
    /// What it wrote.
    pub output: String,
}

/// A test that no driver can pass which tells the topology of its snapshots: csi-sanity 5.6.0 compares the two messages
/// with the internals of Go's protobuf library (`sizeCache`), which differ.
const BROKEN: &str = "should succeed when creating a snapshot with accessibility requirements";

/// Runs csi-sanity's tests on a socket, all but one that is broken itself, which counts as skipped.
///
/// `size` is that of most volumes, in bytes; some are twice as large. `mutable` is what volumes are changed to, where they can
/// be.
///
/// # Errors
///
/// If it cannot be started, or leaves no report.
pub fn run(
    socket: &Path,
    directory: &Path,
    access: AccessType,
    size: u64,
    mutable: Option<(&str, &str)>,
) -> Result<Report> {
    let changed = directory.join("mutable.yaml");
    if let Some((key, value)) = mutable {
        std::fs::write(&changed, format!("{key}: \"{value}\"\n"))
            .with_context(|| format!("writing {}", changed.display()))?;
    }
    let junit = directory.join("junit.xml");
    let output = Command::new("csi-sanity")
        .arg(format!("--csi.endpoint=unix://{}", socket.display()))
        .arg(format!("--csi.mountdir={}", directory.join("mount").display()))
        .arg(format!("--csi.stagingdir={}", directory.join("staging").display()))
        .arg(format!("--csi.testvolumeaccesstype={}", access.as_str()))
        .arg(format!("--csi.testvolumesize={size}"))
        .arg(format!("--csi.testvolumeexpandsize={}", 2 * size))
        .args(mutable.map(|_| format!("--csi.testvolumemutableparameters={}", changed.display())))
        .arg(format!("--ginkgo.junit-report={}", junit.display()))
        .arg(format!("--ginkgo.skip={BROKEN}"))
        .args(["--ginkgo.no-color", "--ginkgo.seed=1"])
        .stdin(Stdio::null())
        .output()
        .context("run csi-sanity")?;
    let output =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let xml =
        std::fs::read_to_string(&junit).with_context(|| format!("csi-sanity left no report: {output}"))?;
    let tests = read_junit(&xml)?;
    if tests.is_empty() {
        bail!("csi-sanity ran no test: {output}");
    }
    Ok(Report { tests, output })
}

/// The tests of a JUnit report as ginkgo writes it: one `<testcase name="[It] …" status="…"` each.
fn read_junit(xml: &str) -> Result<Vec<(String, Outcome)>> {
    let mut tests = Vec::new();
    for case in xml.split("<testcase ").skip(1) {
        let tag = case.split('>').next().unwrap_or_default();
        let name = attribute(tag, "name").with_context(|| format!("a test without a name: {tag}"))?;
        // What runs before and after the tests is no test.
        let Some(name) = name.strip_prefix("[It] ") else { continue };
        let outcome = match attribute(tag, "status").as_deref() {
            Some("passed") => Outcome::Passed,
            Some("skipped" | "pending") => Outcome::Skipped,
            _ => Outcome::Failed,
        };
        tests.push((name.to_owned(), outcome));
    }
    Ok(tests)
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let plain =
        [("&#34;", "\""), ("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    Some(plain.iter().fold(value.to_owned(), |text, (coded, character)| text.replace(coded, character)))
}

impl Report {
    /// The names of tests that ended so.
    pub fn named(&self, outcome: Outcome) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, had)| *had == outcome).map(|(name, _)| name.as_str())
    }

    /// For each call, how many tests passed, were skipped, failed.
    #[must_use]
    pub fn by_call(&self) -> BTreeMap<&'static str, Cell> {
        let mut cells = BTreeMap::new();
        for (name, outcome) in &self.tests {
            let cell: &mut Cell = cells.entry(call_of(name)).or_default();
            match outcome {
                Outcome::Passed => cell.passed += 1,
                Outcome::Skipped => cell.skipped += 1,
                Outcome::Failed => cell.failed += 1,
            }
        }
        cells
    }

    /// The same as csi/conformance.json has it.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        self.by_call().into_iter().map(|(call, cell)| (call, cell.to_json())).collect()
    }
}

/// How the tests of one call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    passed: usize,
    skipped: usize,
    failed: usize,
}

impl Cell {
    /// As csi/conformance.json has it: what is not there is left out.
    fn to_json(self) -> serde_json::Value {
        let counts = [("passed", self.passed), ("skipped", self.skipped), ("failed", self.failed)];
        counts.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// The calls that csi-sanity's tests are about, as their names have them; a longer name before one that it begins with.
const CALLS: [&str; 30] = [
    "ControllerGetCapabilities",
    "ControllerGetVolumeHealth",
    "ControllerListVolumeHealth",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "CreateSnapshot",
    "CreateVolumeGroupSnapshot",
    "CreateVolume",
    "DeleteSnapshot",
    "DeleteVolumeGroupSnapshot",
    "DeleteVolume",
    "ExpandVolume",
    "GetCapacity",
    "GetPluginCapabilities",
    "GetPluginInfo",
    "GetSnapshot",
    "GetVolumeGroupSnapshot",
    "GroupControllerGetCapabilities",
    "ListSnapshots",
    "ListVolumes",
    "ModifyVolume",
    "NodeGetCapabilities",
    "NodeGetInfo",
    "NodeGetStorageHealth",
    "NodeGetVolumeHealth",
    "NodeGetVolumeStats",
    "NodePublishVolume",
    "NodeStageVolume",
    "ValidateVolumeCapabilities",
    "Probe",
];

/// And those whose names others contain.
const CONTAINED: [&str; 3] = ["NodeExpandVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];

fn call_of(name: &str) -> &'static str {
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let of = |call: &&&str| words().any(|word| word == **call);
    CONTAINED.iter().find(of).or_else(|| CALLS.iter().find(of)).copied().unwrap_or("whole life")
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<testsuites><testsuite name="CSI Driver Test Suite">
        <testcase name="[BeforeSuite]" classname="c" status="passed" time="0.1"></testcase>
        <testcase name="[It] Controller Service [Controller Server] CreateVolume should fail" status="passed"></testcase>
        <testcase name="[It] Node Service NodeExpandVolume should &#34;fail&#34;" status="failed"><failure/></testcase>
        <testcase name="[It] Node Service should work" status="skipped"><skipped/></testcase>
        <testcase name="[It] ExpandVolume [Controller Server] should work" status="panicked"></testcase>"#;

    #[test]
    fn a_report_is_read_test_by_test() {
        let report = Report { tests: read_junit(XML).unwrap(), output: String::new() };
        assert_eq!(report.tests.len(), 4);
        assert_eq!(report.named(Outcome::Failed).count(), 2);
        assert!(report.named(Outcome::Failed).any(|name| name.contains("\"fail\"")));
        let expected = r#"{"CreateVolume":{"passed":1},"ExpandVolume":{"failed":1},"NodeExpandVolume":{"failed":1},
            "whole life":{"skipped":1}}"#;
        assert_eq!(report.to_json(), serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }
}
