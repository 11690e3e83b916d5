//! Disks that are pulled, put back, resized and divided, and how long it takes until the monitor says so.

use std::fmt::Write as _;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use devices::Bytes;
use devices::discovery::{Discovery, Udev};
use devices::monitor::{Attribute, Event, Monitor};
use rig::disk::virtual_disks;
use rig::{eventually, tool};

/// The disks of each bus: their place among the machine's, and their serial numbers.
pub(crate) const SCSI: (usize, &str) = (6, "rig-06");
pub(crate) const VIRTIO: (usize, &str) = (5, "rig-05");
pub(crate) const NVME: (usize, &str) = (8, "rig-08");

/// Whether udevd runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Udevd {
    Runs,
    Absent,
}

const SIZE: Bytes = Bytes::gib(20);
const LARGER: Bytes = Bytes::gib(21);
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the host says how long it took until it acted.
const HOST_DELAY: &str = "/run/out/delay";

/// One kind of event, and how long each took.
struct Series {
    what: &'static str,
    times: Vec<Duration>,
}

/// The times from the host's act to the event, over all rounds.
pub(crate) struct Rounds {
    monitor: Monitor,
    series: Vec<Series>,
}

/// Whether there are disks that can be pulled here; else a line says why not.
pub(crate) fn skip_unless_pluggable() -> bool {
    let skip = virtual_disks().is_empty();
    if skip {
        println!("SKIPPED: there are no virtual disks outside of the machine");
    }
    skip
}

/// From the host's act to the event that says that udevd has made the links.
const LINKED: &str = "links after plug";

impl Rounds {
    pub(crate) fn new() -> Self {
        Self { monitor: Monitor::start(Discovery::host()).unwrap(), series: Vec::new() }
    }

    /// Pulls a disk, puts it back, and checks that it is the same disk.
    pub(crate) fn replug(&mut self, (place, serial): (usize, &str), udevd: Udevd) {
        let is = |event: &Event| event.disk().identity.serial.as_deref() == Some(serial);
        let removed = |event: &Event| matches!(event, Event::Removed(_)) && is(event);
        let name = self.timed("unplug", &format!("unplug {place}"), removed).disk().name.clone();
        let shown = when_shown(name);
        let asked = Instant::now();
        let added = |event: &Event| matches!(event, Event::Added(_)) && is(event);
        let event = self.timed("plug", &format!("plug {place}"), added);
        let told = Instant::now();
        if let Some(shown) = shown.join().unwrap() {
            self.note("told after the kernel showed it", told.saturating_duration_since(shown));
        }
        assert_eq!(event.disk().size, SIZE, "{:?}", event.disk());
        let name = event.disk().name.clone();
        if udevd == Udevd::Absent {
            assert_eq!((event.disk().udev, event.disk().links.len()), (Udev::Absent, 0));
            return;
        }
        if event.disk().udev != Udev::Done {
            self.until(|event| {
                let linked = matches!(event, Event::Changed { what, .. } if what.contains(&Attribute::Links));
                linked && event.disk().name == name && event.disk().udev == Udev::Done
            });
        }
        let delay = host_delay();
        self.note(LINKED, asked.elapsed().saturating_sub(delay));
    }

    /// Makes a disk larger and gives it its size back.
    pub(crate) fn resize(&mut self, (place, serial): (usize, &str)) {
        for (what, from, to) in [("grow", SIZE, LARGER), ("shrink", LARGER, SIZE)] {
            let event = self.timed(what, &format!("resize {place} {}", to.get()), |event| {
                matches!(event, Event::Resized { .. })
                    && event.disk().identity.serial.as_deref() == Some(serial)
            });
            let Event::Resized { disk, from: was } = event else { unreachable!() };
            assert_eq!((was, disk.size), (from, to));
        }
    }

    /// Tells the kernel of a partition of a disk, and lets it forget it.
    pub(crate) fn divide(&mut self, disk: &str) {
        let node = format!("/dev/{disk}");
        let is_divided = |event: &Event| {
            let changed =
                matches!(event, Event::Changed { what, .. } if what.contains(&Attribute::Partitions));
            changed && event.disk().name == disk
        };
        tool::run("addpart", [&node, "1", "2048", "4096"]).unwrap();
        let added = Instant::now();
        let event = self.until(is_divided);
        assert_eq!(event.disk().partitions.len(), 1);
        self.note("partition added", added.elapsed());
        // udevd still looks at it.
        eventually("the partition is free", PATIENCE, || tool::run("delpart", [&node, "1"]).is_ok());
        let gone = Instant::now();
        let event = self.until(is_divided);
        assert!(event.disk().partitions.is_empty());
        self.note("partition removed", gone.elapsed());
    }

    /// Asks the host for something, and takes the time from its act to the event.
    fn timed(&mut self, what: &'static str, wish: &str, is: impl Fn(&Event) -> bool) -> Event {
        // An older answer must not be taken for this one's.
        let _ = fs::remove_file(HOST_DELAY);
        let asked = Instant::now();
        println!("\nRIG: {wish}");
        stdout().flush().unwrap();
        let event = self.until(is);
        let took = asked.elapsed();
        self.note(what, took.saturating_sub(host_delay()));
        event
    }

    fn until(&mut self, is: impl Fn(&Event) -> bool) -> Event {
        let end = Instant::now() + PATIENCE;
        let mut seen = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Some(event) = self.monitor.wait(Some(left)).unwrap() else {
                panic!("the event did not come within {PATIENCE:?}; others were:\n{seen}");
            };
            if is(&event) {
                return event;
            }
            let _ = writeln!(seen, "{} {}", event.as_word(), event.disk().name);
        }
    }

    fn note(&mut self, what: &'static str, time: Duration) {
        match self.series.iter_mut().find(|series| series.what == what) {
            Some(series) => series.times.push(time),
            None => self.series.push(Series { what, times: vec![time] }),
        }
    }

    /// Says median and worst of each kind, and fails when a median is not below a second: of PCI disks that of what is
    /// after the kernel's own second or so, and not of what waits for udevd.
    pub(crate) fn finish(mut self, of: &str) {
        let mut text = String::new();
        let mut slow = Vec::new();
        for series in &mut self.series {
            series.times.sort_unstable();
            let (median, worst) =
                (series.times[series.times.len() / 2], series.times[series.times.len() - 1]);
            let _ = write!(text, "; {} {:.0?}, {:.0?}", series.what, median, worst);
            let of_the_kernel = series.what.contains("plug") && !of.contains("SCSI");
            // When udevd has made the links is its own affair: mostly within 0.1 s, and seen to be five.
            let of_udevd = series.what == LINKED;
            if median >= Duration::from_secs(1) && !of_the_kernel && !of_udevd {
                slow.push(series.what);
            }
        }
        let rounds = self.series.first().map_or(0, |series| series.times.len());
        println!("\nFIGURES: {of}, {rounds} rounds, median and worst: {}", text.trim_start_matches("; "));
        assert!(slow.is_empty(), "these take a second and more: {slow:?}");
    }
}

/// When the kernel first shows a disk of this name in sysfs; `None` when it does not soon.
fn when_shown(name: String) -> thread::JoinHandle<Option<Instant>> {
    thread::spawn(move || {
        let dir = Path::new("/sys/class/block").join(name);
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if dir.exists() {
                return Some(Instant::now());
            }
            thread::sleep(Duration::from_millis(1));
        }
        None
    })
}

fn host_delay() -> Duration {
    let text = fs::read_to_string(HOST_DELAY).unwrap();
    Duration::from_micros(text.trim().parse().unwrap())
}
