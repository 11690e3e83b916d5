//! liblvm2cmd.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use lvm::run::ReturnCode;

use crate::{FAILED, log};

/// The library, started; there is one in a process.
pub(crate) struct Library {
    handle: NonNull<c_void>,
    /// The library is not safe for threads, so the handle stays on the one it was made on.
    _thread: PhantomData<*const ()>,
}

impl Library {
    /// Starts the library with the configuration that `LVM_SYSTEM_DIR` names.
    pub(crate) fn open() -> Option<Self> {
        // SAFETY: `on_message` has the C signature, lives as long as the program and does not unwind.
        unsafe { lvm_sys::lvm2_log_fn(Some(on_message)) };
        // SAFETY: no other thread exists, and this is the only handle.
        let handle = NonNull::new(unsafe { lvm_sys::lvm2_init() })?;
        // SAFETY: the handle is live.
        unsafe { lvm_sys::lvm2_disable_dmeventd_monitoring(handle.as_ptr()) };
        Some(Self { handle, _thread: PhantomData })
    }

    /// Runs one command line to its end.
    pub(crate) fn run(&self, line: &str) -> ReturnCode {
        let Ok(line) = CString::new(line) else { return ReturnCode::InvalidParameters };
        // SAFETY: the handle is live, the text ends with a zero and outlives the call, and no other call runs.
        let code = unsafe { lvm_sys::lvm2_run(self.handle.as_ptr(), line.as_ptr()) };
        match code {
            lvm_sys::LVM2_COMMAND_SUCCEEDED => ReturnCode::Succeeded,
            lvm_sys::LVM2_NO_SUCH_COMMAND => ReturnCode::NoSuchCommand,
            lvm_sys::LVM2_INVALID_PARAMETERS => ReturnCode::InvalidParameters,
            lvm_sys::LVM2_INIT_FAILED => ReturnCode::InitFailed,
            _ => FAILED,
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and nobody uses it after this.
        unsafe { lvm_sys::lvm2_exit(self.handle.as_ptr()) };
    }
}

/// Keeps a message. Panics nowhere: unwinding into C is undefined.
unsafe extern "C" fn on_message(
    level: c_int,
    _file: *const c_char,
    _line: c_int,
    _errno: c_int,
    message: *const c_char,
) {
    if message.is_null() {
        return;
    }
    // The bits above the third are flags.
    let level = u8::try_from(level & 7).unwrap_or(u8::MAX);
    // SAFETY: the library passes a text that ends with a zero and lives until we return.
    let message = unsafe { CStr::from_ptr(message) };
    log::append(level, message.to_bytes());
}
