//! libdevmapper.

use std::ffi::{CString, c_int};
use std::io;
use std::ptr::NonNull;

use lvm_sys::dm_task;

/// A request to the kernel that is being put together.
pub(crate) struct Task(NonNull<dm_task>);

/// A text with a zero inside, or no memory: neither comes from what the parent checked.
fn refused(what: &str) -> io::Error {
    io::Error::other(format!("libdevmapper did not take {what}"))
}

fn c_text(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| refused("a text with a zero in it"))
}

fn taken(result: c_int, what: &str) -> io::Result<()> {
    if result == 1 { Ok(()) } else { Err(refused(what)) }
}

impl Task {
    /// Starts a task of a `DM_DEVICE_` kind on a device.
    pub(crate) fn new(kind: c_int, device: &str) -> io::Result<Self> {
        let name = c_text(device)?;
        // SAFETY: takes a number and returns a new task or null.
        let task = unsafe { lvm_sys::dm_task_create(kind) };
        let task = Self(NonNull::new(task).ok_or_else(|| refused("a task"))?);
        // SAFETY: the task is live and the name is copied.
        taken(unsafe { lvm_sys::dm_task_set_name(task.as_ptr(), name.as_ptr()) }, "the name")?;
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_no_open_count(task.as_ptr()) }, "an option")?;
        Ok(task)
    }

    fn as_ptr(&self) -> *mut dm_task {
        self.0.as_ptr()
    }

    pub(crate) fn uuid(&mut self, uuid: &str) -> io::Result<()> {
        let uuid = c_text(uuid)?;
        // SAFETY: the task is live and the text is copied.
        taken(unsafe { lvm_sys::dm_task_set_uuid(self.as_ptr(), uuid.as_ptr()) }, "the uuid")
    }

    pub(crate) fn read_only(&mut self) -> io::Result<()> {
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_set_ro(self.as_ptr()) }, "an option")
    }

    pub(crate) fn no_flush(&mut self) -> io::Result<()> {
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_no_flush(self.as_ptr()) }, "an option")
    }

    pub(crate) fn no_freeze(&mut self) -> io::Result<()> {
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_skip_lockfs(self.as_ptr()) }, "an option")
    }

    pub(crate) fn retry_remove(&mut self) -> io::Result<()> {
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_retry_remove(self.as_ptr()) }, "an option")
    }

    pub(crate) fn line(&mut self, start: u64, length: u64, target: &str, parameters: &str) -> io::Result<()> {
        let (target, parameters) = (c_text(target)?, c_text(parameters)?);
        let task = self.as_ptr();
        // SAFETY: the task is live and both texts are copied.
        let result =
            unsafe { lvm_sys::dm_task_add_target(task, start, length, target.as_ptr(), parameters.as_ptr()) };
        taken(result, "a line of the table")
    }

    pub(crate) fn message(&mut self, sector: u64, text: &str) -> io::Result<()> {
        let text = c_text(text)?;
        // SAFETY: the task is live.
        taken(unsafe { lvm_sys::dm_task_set_sector(self.as_ptr(), sector) }, "the sector")?;
        // SAFETY: the task is live and the text is copied.
        taken(unsafe { lvm_sys::dm_task_set_message(self.as_ptr(), text.as_ptr()) }, "the message")
    }

    /// Ties the task to a cookie; `cookie` is 0 before the first task and the cookie's number from then on.
    pub(crate) fn cookie(&mut self, cookie: &mut u32) -> io::Result<()> {
        // SAFETY: the task is live, and the library keeps the number, not the pointer.
        taken(unsafe { lvm_sys::dm_task_set_cookie(self.as_ptr(), cookie, 0) }, "the udev cookie")
    }

    /// Asks the kernel.
    pub(crate) fn run(self) -> io::Result<()> {
        // SAFETY: the task is live.
        if unsafe { lvm_sys::dm_task_run(self.as_ptr()) } == 1 {
            return Ok(());
        }
        // SAFETY: the task is live.
        match unsafe { lvm_sys::dm_task_get_errno(self.as_ptr()) } {
            0 => Err(refused("the task")),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // SAFETY: the task is live, and nobody uses it after this.
        unsafe { lvm_sys::dm_task_destroy(self.as_ptr()) };
    }
}

/// Whether tasks with a cookie wait for udev from here on. LVM sets it anew in each of its commands.
pub(crate) fn wait_for_udev(wait: bool) {
    // SAFETY: sets a number in the library.
    unsafe { lvm_sys::dm_udev_set_sync_support(c_int::from(wait)) };
}

/// Waits until udev has finished with every task of a cookie.
pub(crate) fn wait_cookie(cookie: u32) -> io::Result<()> {
    // SAFETY: takes a number; one that is no cookie is refused.
    taken(unsafe { lvm_sys::dm_udev_wait(cookie) }, "the wait for the udev cookie")
}

/// Counts a cookie down once.
pub(crate) fn complete_cookie(cookie: u32) -> io::Result<()> {
    // SAFETY: takes a number; one that is no cookie is refused.
    taken(unsafe { lvm_sys::dm_udev_complete(cookie) }, "the udev cookie")
}
