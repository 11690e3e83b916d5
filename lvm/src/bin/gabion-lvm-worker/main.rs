//! The process that holds liblvm2cmd.
//!
//! Started by `lvm::worker` with a socket as its standard input, and by nobody else. It has one thread, does one
//! job at a time, and writes nothing while it does: a caller that went away never ends a command half-way. When
//! the socket ends, it finishes its command and exits.

mod ffi;
mod flush;
mod log;
mod setup;
mod tables;

use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Instant;

use lvm::run::ReturnCode;
use lvm::worker::frame::{
    Hello, Job, JobReply, JobRequest, PROTOCOL, REPLY_MAX, REQUEST_MAX, read_frame, write_frame,
};

use crate::ffi::lvm::Library;
use crate::setup::Stderr;
use crate::tables::Tables;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gabion-lvm-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut socket = setup::take_over()?;
    log::reserve();
    let library = Library::open().ok_or_else(|| io::Error::other("liblvm2cmd did not start"))?;
    let stderr = Stderr::capture()?;
    write_frame(&mut socket, &Hello { protocol: PROTOCOL, lvm_version: version(&library) }, REPLY_MAX)?;
    let mut tables = Tables::default();
    while let Some(request) = read_frame::<JobRequest>(&mut socket, REQUEST_MAX)? {
        let reply = answer(&library, &mut tables, &stderr, request);
        if !send(&mut socket, &reply)? {
            break;
        }
        ffi::process::give_memory_back();
    }
    Ok(())
}

/// What `lvm version` calls its own version; empty if it does not say.
fn version(library: &Library) -> String {
    log::take();
    let _ = library.run("version");
    let (records, _) = log::take();
    let prefix = "LVM version:";
    records.iter().find_map(|record| record.message.strip_prefix(prefix)).map_or("", str::trim).to_owned()
}

fn answer(library: &Library, tables: &mut Tables, stderr: &Stderr, request: JobRequest) -> JobReply {
    log::take();
    let start = Instant::now();
    let code = match request.job {
        Job::Lvm { line, flush } => match library.run(&line) {
            ReturnCode::Succeeded => flush::all(&flush),
            code => code,
        },
        Job::Flush { devices } => flush::all(&devices),
        Job::Tables { steps, udev } => tables.change(&steps, udev),
        Job::CompleteCookie { cookie } => tables::complete_cookie(cookie),
    };
    let elapsed_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    let (mut records, truncated) = log::take();
    records.extend(stderr.take());
    JobReply { seq: request.seq, code, records, truncated, elapsed_us }
}

/// Whether somebody is still there to read. A reply too long for a frame shrinks to a failure that says so.
fn send(socket: &mut UnixStream, reply: &JobReply) -> io::Result<bool> {
    let sent = match write_frame(socket, reply, REPLY_MAX) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let short = JobReply { records: Vec::new(), truncated: true, ..reply.clone() };
            write_frame(socket, &short, REPLY_MAX)
        }
        other => other,
    };
    match sent {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a failed call of libdevmapper and a line that is no C string have in common.
const FAILED: ReturnCode = ReturnCode::Failed;
