//! The guest's side of the rig: started by the machine's init, ends with the host's end of the port.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use guest::protocol::PORT;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

fn main() -> Result<()> {
    let path = find_port()?;
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening the port {}", path.display()))?;
    // A serial line would wait for whole lines, and change bytes; the emulator's port is none and refuses this.
    if let Ok(mut settings) = tcgetattr(&port) {
        settings.make_raw();
        tcsetattr(&port, OptionalActions::Now, &settings).context("setting the port to raw")?;
    }
    guest::runner::serve(port).context("serving the host's requests")
}

/// The port that `GABION_PORT` names, else the virtio-serial port of our name; its driver may still be starting.
fn find_port() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("GABION_PORT") {
        return Ok(PathBuf::from(path));
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        for entry in fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                return Ok(PathBuf::from("/dev").join(entry.file_name()));
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("no virtio-serial port named {PORT}; is this the rig's virtual machine?")
}
