//! `gabion devices watch`: what happens to devices, one line each.

use std::time::{Duration, Instant};

use anyhow::Result;
use devices::discovery::{Discovery, Disk};
use devices::monitor::{Attribute, Event, Monitor};
use serde::Serialize;

use crate::output::{Output, Units};

/// An event as programs get it, one document a line.
#[derive(Serialize)]
struct Line<'a> {
    /// `ready` once, when everything that happens from now on is told; then `added`, `removed`, `resized`, `changed`.
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Brief<'a>>,
    /// Of `resized`: the size until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_bytes: Option<u64>,
    /// Of `changed`: what is different.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    what: Vec<&'static str>,
}

/// What tells one device from another.
#[derive(Serialize)]
struct Brief<'a> {
    name: &'a str,
    path: String,
    number: String,
    #[serde(rename = "type")]
    kind: &'a str,
    size_bytes: u64,
    transport: Option<&'static str>,
    key: Option<String>,
    wwn: Option<&'a str>,
    serial: Option<&'a str>,
    links: Vec<String>,
}

impl<'a> Brief<'a> {
    fn of(disk: &'a Disk) -> Self {
        Self {
            name: &disk.name,
            path: disk.path.display().to_string(),
            number: disk.number.to_string(),
            kind: disk.type_word(),
            size_bytes: disk.size.get(),
            transport: disk.transport.map(devices::discovery::Transport::as_word),
            key: disk.key().map(|key| key.to_string()),
            wwn: disk.identity.wwn.as_deref(),
            serial: disk.identity.serial.as_deref(),
            links: disk.links.iter().map(|link| link.display().to_string()).collect(),
        }
    }
}

/// Tells what happens, until the time is over or nobody reads any more.
pub(super) fn watch(limit: Option<Duration>, output: &mut Output<'_>) -> Result<()> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut monitor = Monitor::start(Discovery::host())?;
    let ready = Line { event: "ready", device: None, from_bytes: None, what: Vec::new() };
    output.show_next(&ready, |_, _| format!("watching {} devices\n", monitor.disks().count()))?;
    while output.has_reader() {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let Some(event) = monitor.wait(left)? else { return Ok(()) };
        tell(&event, output)?;
    }
    Ok(())
}

fn tell(event: &Event, output: &mut Output<'_>) -> Result<()> {
    let (from, what) = match event {
        Event::Resized { from, .. } => (Some(*from), Vec::new()),
        Event::Changed { what, .. } => (None, what.iter().map(|what| Attribute::as_word(*what)).collect()),
        _ => (None, Vec::new()),
    };
    let line = Line {
        event: event.as_word(),
        device: Some(Brief::of(event.disk())),
        from_bytes: from.map(devices::Bytes::get),
        what,
    };
    output.show_next(&line, |line, units| for_people(event, &line.what, units))
}

fn for_people(event: &Event, what: &[&str], units: Units) -> String {
    let disk = event.disk();
    let (word, path, size) = (event.as_word(), disk.path.display(), units.size(disk.size));
    match event {
        Event::Resized { from, .. } => format!("{word:8}  {path}  {} -> {size}\n", units.size(*from)),
        Event::Changed { .. } => format!("{word:8}  {path}  {}\n", what.join(", ")),
        _ => {
            let key = disk.key().map(|key| format!("  {key}")).unwrap_or_default();
            format!("{word:8}  {path}  {}  {size}{key}\n", disk.type_word())
        }
    }
}
