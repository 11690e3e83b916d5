//! Changes of device-mapper tables: gates, linear windows, and what recovery does.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use lvm::run::ReturnCode;
use lvm::worker::table::{Access, Flush, Freeze, TableLine, TableStep};
use lvm_sys::{
    DM_DEVICE_CLEAR, DM_DEVICE_CREATE, DM_DEVICE_RELOAD, DM_DEVICE_REMOVE, DM_DEVICE_RESUME,
    DM_DEVICE_SUSPEND, DM_DEVICE_TARGET_MSG,
};
use rustix::mm::MlockAllFlags;

use crate::FAILED;
use crate::ffi::cookie;
use crate::ffi::devmapper::{self, Task};
use crate::log;

/// How long udev may still have to do with a dead process's devices.
const UDEV_PATIENCE: Duration = Duration::from_secs(3);

/// What this process holds back.
#[derive(Default)]
pub(crate) struct Tables {
    /// Devices that jobs of this process suspended and none has resumed. While there are any, memory is locked: a
    /// page of ours may have to come from such a device.
    suspended: BTreeSet<String>,
}

/// What one job has done so far.
#[derive(Default)]
struct Progress {
    cookie: u32,
    suspended: Vec<String>,
    resumed: Vec<String>,
}

impl Tables {
    /// Carries the steps out. After a failure, what this job suspended runs again with its old table.
    pub(crate) fn change(&mut self, steps: &[TableStep], udev: bool) -> ReturnCode {
        devmapper::wait_for_udev(udev);
        if steps.iter().any(|step| matches!(step, TableStep::Suspend { .. })) {
            // Where locking is not allowed, the job is no worse off than any program that suspends a device.
            let _ = rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
        }
        let mut progress = Progress::default();
        let mut code = ReturnCode::Succeeded;
        for step in steps {
            if let Err(error) = carry_out(step, &mut progress) {
                log::say(&format!("{}: {error}", describe(step)));
                code = FAILED;
                break;
            }
        }
        if code == FAILED {
            for device in std::mem::take(&mut progress.suspended) {
                back_to_work(&device, &mut progress);
            }
        }
        if progress.cookie != 0
            && let Err(error) = devmapper::wait_cookie(progress.cookie)
        {
            log::say(&format!("wait for udev (cookie {:#x}): {error}", progress.cookie));
            code = FAILED;
        }
        self.account(progress);
        code
    }

    fn account(&mut self, progress: Progress) {
        for device in &progress.resumed {
            self.suspended.remove(device);
        }
        self.suspended.extend(progress.suspended);
        if self.suspended.is_empty() {
            let _ = rustix::mm::munlockall();
        }
    }
}

/// Counts a cookie down in the place of udev.
pub(crate) fn complete_cookie(cookie: u32) -> ReturnCode {
    match devmapper::complete_cookie(cookie) {
        Ok(()) => ReturnCode::Succeeded,
        Err(error) => {
            log::say(&format!("complete udev cookie {cookie:#x}: {error}"));
            FAILED
        }
    }
}

fn describe(step: &TableStep) -> String {
    match step {
        TableStep::Create { device, .. } => format!("create device {device}"),
        TableStep::Load { device, .. } => format!("load a table into device {device}"),
        TableStep::Suspend { device, .. } => format!("suspend device {device}"),
        TableStep::Resume { device } => format!("resume device {device}"),
        TableStep::Clear { device } => format!("clear the inactive table of device {device}"),
        TableStep::Remove { device } => format!("remove device {device}"),
        TableStep::Message { device, text, .. } => format!("send {text:?} to device {device}"),
        TableStep::DropCookie { cookie } => format!("remove udev cookie {cookie:#x}"),
    }
}

fn carry_out(step: &TableStep, progress: &mut Progress) -> io::Result<()> {
    match step {
        TableStep::Create { device, uuid, table, access } => {
            let mut task = with_table(DM_DEVICE_CREATE, device, table, *access)?;
            if let Some(uuid) = uuid {
                task.uuid(uuid)?;
            }
            task.cookie(&mut progress.cookie)?;
            task.run()
        }
        TableStep::Load { device, table, access } => {
            with_table(DM_DEVICE_RELOAD, device, table, *access)?.run()
        }
        TableStep::Suspend { device, flush, freeze } => {
            let mut task = Task::new(DM_DEVICE_SUSPEND, device)?;
            if *flush == Flush::NoFlush {
                task.no_flush()?;
            }
            if *freeze == Freeze::NoFreeze {
                task.no_freeze()?;
            }
            task.run()?;
            progress.suspended.push(device.clone());
            Ok(())
        }
        TableStep::Resume { device } => {
            resume(device, progress)?;
            progress.suspended.retain(|suspended| suspended != device);
            progress.resumed.push(device.clone());
            Ok(())
        }
        TableStep::Clear { device } => Task::new(DM_DEVICE_CLEAR, device)?.run(),
        TableStep::Remove { device } => {
            let mut task = Task::new(DM_DEVICE_REMOVE, device)?;
            task.retry_remove()?;
            task.cookie(&mut progress.cookie)?;
            task.run()
        }
        TableStep::Message { device, sector, text } => {
            let mut task = Task::new(DM_DEVICE_TARGET_MSG, device)?;
            task.message(sector.get(), text)?;
            task.run()
        }
        TableStep::DropCookie { cookie } => cookie::remove(*cookie, UDEV_PATIENCE),
    }
}

fn with_table(kind: i32, device: &str, table: &[TableLine], access: Access) -> io::Result<Task> {
    let mut task = Task::new(kind, device)?;
    for line in table {
        task.line(line.start.get(), line.length.get(), &line.target, &line.parameters)?;
    }
    if access == Access::ReadOnly {
        task.read_only()?;
    }
    Ok(task)
}

fn resume(device: &str, progress: &mut Progress) -> io::Result<()> {
    let mut task = Task::new(DM_DEVICE_RESUME, device)?;
    task.cookie(&mut progress.cookie)?;
    task.run()
}

/// Drops what was loaded and lets the device run as before; a failure is said and the next device tried.
fn back_to_work(device: &str, progress: &mut Progress) {
    let cleared = Task::new(DM_DEVICE_CLEAR, device).and_then(Task::run);
    if let Err(error) = cleared.and_then(|()| resume(device, progress)) {
        log::say(&format!("let device {device} run again: {error}"));
        progress.suspended.push(device.to_owned());
    }
}
