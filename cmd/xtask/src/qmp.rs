//! The emulator's control socket (QEMU: docs/interop/qmp-spec), as far as disks are pulled and put back.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::qemu::connect;

/// How long the emulator may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// A connection to the emulator's control socket.
#[derive(Debug)]
pub struct Qmp {
    lines: BufReader<UnixStream>,
    events: VecDeque<Value>,
}

impl Qmp {
    /// Connects and takes the emulator out of its negotiation mode.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = connect(socket)?;
        stream.set_read_timeout(Some(ANSWER)).context("limiting the wait for the emulator's answers")?;
        let mut qmp = Qmp { lines: BufReader::new(stream), events: VecDeque::new() };
        qmp.message().context("reading the emulator's greeting")?;
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Sends a command and returns what the emulator answers.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let mut line = json!({"execute": command, "arguments": arguments}).to_string();
        line.push('\n');
        self.lines.get_mut().write_all(line.as_bytes()).with_context(|| format!("sending {command}"))?;
        loop {
            let message = self.message().with_context(|| format!("waiting for the answer to {command}"))?;
            if let Some(answer) = message.get("return") {
                return Ok(answer.clone());
            }
            if let Some(error) = message.get("error") {
                bail!("the emulator refuses {command} {arguments}: {}", error["desc"]);
            }
            self.events.push_back(message);
        }
    }

    /// Waits until the emulator reports that a device is gone.
    pub fn wait_deleted(&mut self, device: &str) -> Result<()> {
        let gone = |event: &Value| event["event"] == "DEVICE_DELETED" && event["data"]["device"] == device;
        let start = Instant::now();
        while start.elapsed() < ANSWER {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self.message().with_context(|| format!("waiting until {device} is gone"))?,
            };
            if gone(&event) {
                return Ok(());
            }
        }
        bail!("the guest did not let go of {device} within {} s", ANSWER.as_secs())
    }

    fn message(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.lines.read_line(&mut line).context("reading from the emulator")? == 0 {
            bail!("the emulator has ended");
        }
        serde_json::from_str(&line).with_context(|| format!("the emulator said {line}"))
    }
}
