//! A driver that starts over many volumes: it serves before all of them are active.

use std::path::Path;
use std::time::{Duration, Instant};

use csi::proto::*;
use devices::Bytes;
use rig::agent::Agent;
use rig::csi_client::Csi;
use rig::{Disk, Footprint, eventually, skip_unless_dm, tool};

const GROUP: &str = "gabion-many";

/// Takes what is on the disk out of the kernel.
struct Many {
    agent: Agent,
    /// Gone after the driver and its volumes.
    _disk: Disk,
}

impl Drop for Many {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.agent.log());
        }
        // What is still in use belongs to a test that has failed already; the runner tells what is left.
        let _ = self.agent.stop();
        let _ = tool::run("vgchange", ["--activate", "n", GROUP]);
    }
}

/// Starts a driver over so many volumes that are not active, and once more over active ones.
pub(crate) fn over(count: usize, patience: Duration) {
    if skip_unless_dm() {
        return;
    }
    let mut many = blank();
    let directory = many.agent.directory().to_owned();
    many.agent.stop().unwrap();
    let tags = ["gabion.dev/owner=rig", "gabion.dev/class=many"];
    rig::fleet::fill_tagged(|words| tool::run("lvm", words), &directory, GROUP, 1, count, &tags).unwrap();
    assert_eq!(active(), 0);

    let begun = Instant::now();
    // Of one that has ended there is nothing to kill.
    many.agent.crash().unwrap();
    let (served, then) = (begun.elapsed(), active());
    let csi = Csi::connect(&many.agent.socket()).unwrap();
    assert_eq!(listed(&csi), count);
    // What is to be changed now need not wait for all the others.
    let last = format!("pvc-{:08x}", count - 1);
    let request = DeleteVolumeRequest { volume_id: last, ..Default::default() };
    csi.wait(csi.controller().delete_volume(request)).unwrap();
    let deleted = begun.elapsed();
    eventually("all volumes are active", patience, || active() == count - 1);
    let all = begun.elapsed();
    eventually("the driver says so", patience, || many.agent.log().contains("volumes of class many in"));
    assert_eq!(listed(&csi), count - 1);

    let begun = Instant::now();
    many.agent.crash().unwrap();
    let again = begun.elapsed();
    let csi = Csi::connect(&many.agent.socket()).unwrap();
    assert_eq!(listed(&csi), count - 1);
    assert_eq!(many.agent.log().matches("volumes of class many").count(), 1, "nothing was left to activate");
    figures(&format!(
        "over {count} volumes: served after {:.1} s with {then} active, one deleted after {:.1} s, all active after {:.1} s; \
         over active ones served after {:.1} s; {}",
        served.as_secs_f64(),
        deleted.as_secs_f64(),
        all.as_secs_f64(),
        again.as_secs_f64(),
        Footprint::of(many.agent.pid()).unwrap()
    ));
}

/// A driver with a group that has no volume.
fn blank() -> Many {
    let disk = Disk::partitioned(Bytes::gib(20), Bytes::new(512)).unwrap();
    let class = format!(
        "{{apiVersion: gabion.dev/v1alpha1, kind: DeviceClass, metadata: {{name: many}}, \
         spec: {{devices: {{paths: [{}]}}, pool: {{lvm: {{}}}}}}}}\n",
        disk.path().display()
    );
    Many { agent: Agent::start(&class, &[]).unwrap(), _disk: disk }
}

/// How many volumes of the group the kernel has.
fn active() -> usize {
    let nodes = std::fs::read_dir(Path::new("/sys/class/block")).unwrap();
    let names = nodes.filter_map(|node| std::fs::read_to_string(node.unwrap().path().join("dm/name")).ok());
    names.filter(|name| name.starts_with("gabion--many-")).count()
}

fn listed(csi: &Csi) -> usize {
    csi.wait(csi.controller().list_volumes(ListVolumesRequest::default())).unwrap().entries.len()
}

fn figures(text: &str) {
    // The harness has begun a line, and the runner looks at beginnings of lines.
    println!("\nFIGURES: {text}");
}
