//! A group as a real machine had it, for tests: the text of `vgcfgbackup`, and what `dmsetup` said.

use std::sync::Arc;

use lvm::dm::{DmUuid, Status};
use lvm::metadata::{PvDevice, PvFlag, Vg, View};

use crate::host::Host;
use crate::live::{Kernel, Live, LiveDevice};

const METADATA: &str = include_str!("../testdata/data.vg");
/// Name, uuid, open count, suspension, tables; one device a line.
const INFO: &str = include_str!("../testdata/data.info");
/// Name, start, length, target, status; one line of a table a line.
const STATUS: &str = include_str!("../testdata/data.status");

/// The machine as it was.
pub(crate) fn host() -> Host {
    host_with(&[], &[])
}

/// The machine with parts of its metadata, and of what the kernel said, replaced.
///
/// Every replacement must find its text, so that no test goes blind. A PV is on the device that it was on, unless its
/// status says `MISSING`.
pub(crate) fn host_with(metadata: &[(&str, &str)], kernel: &[(&str, &str)]) -> Host {
    let mut vg = Vg::from_text(&replaced(METADATA, metadata)).unwrap();
    for pv in vg.pvs.iter_mut().filter(|pv| !pv.has(&PvFlag::Missing)) {
        let path = pv.hint.clone().unwrap().into_string();
        pv.device = Some(PvDevice::new(path, pv.dev_size.unwrap().to_bytes().unwrap()));
    }
    let mut view = View::default();
    view.vgs.push(vg.into());
    Host { view: Arc::new(view), live: live(&replaced(&format!("{INFO}=\n{STATUS}"), kernel)) }
}

/// The machine without device-mapper.
pub(crate) fn host_at_rest() -> Host {
    Host { live: Live::default(), ..host() }
}

fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in the fixture");
        text.replace(from, to)
    })
}

fn live(text: &str) -> Live {
    let mut live = Live::default();
    live.kernel = Kernel::Present;
    let (info, lines) = text.split_once("=\n").unwrap();
    for line in info.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, uuid, open, suspended, _] = fields[..] else { panic!("{line}") };
        let serves = uuid.parse::<DmUuid>().unwrap().lvm().unwrap();
        let status =
            lines.lines().filter_map(|line| line.strip_prefix(&format!("{name}: "))).map(status).collect();
        let device = LiveDevice {
            layer: serves.layer,
            suspended: suspended == "Suspended",
            open_count: open.parse().unwrap(),
            status,
        };
        live.insert(serves.vg, serves.lv, device);
    }
    live
}

fn status(line: &str) -> Status {
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    Status::parse(words[2], words.get(3).copied().unwrap_or_default()).unwrap()
}
