// Made from vendor-headers by `cargo xtask bindings`; do not edit.

pub const LVM2_LOG_FATAL: i32 = 2;
pub const LVM2_LOG_ERROR: i32 = 3;
pub const LVM2_LOG_PRINT: i32 = 4;
pub const LVM2_LOG_VERBOSE: i32 = 5;
pub const LVM2_LOG_VERY_VERBOSE: i32 = 6;
pub const LVM2_LOG_DEBUG: i32 = 7;
pub const LVM2_COMMAND_SUCCEEDED: i32 = 1;
pub const LVM2_NO_SUCH_COMMAND: i32 = 2;
pub const LVM2_INVALID_PARAMETERS: i32 = 3;
pub const LVM2_INIT_FAILED: i32 = 4;
pub const LVM2_PROCESSING_FAILED: i32 = 5;
pub const DM_DEVICE_CREATE: i32 = 0;
pub const DM_DEVICE_RELOAD: i32 = 1;
pub const DM_DEVICE_REMOVE: i32 = 2;
pub const DM_DEVICE_SUSPEND: i32 = 4;
pub const DM_DEVICE_RESUME: i32 = 5;
pub const DM_DEVICE_CLEAR: i32 = 14;
pub const DM_DEVICE_TARGET_MSG: i32 = 17;
pub const DM_UDEV_DISABLE_DM_RULES_FLAG: i32 = 1;
pub const DM_UDEV_DISABLE_SUBSYSTEM_RULES_FLAG: i32 = 2;
pub const DM_UDEV_DISABLE_DISK_RULES_FLAG: i32 = 4;
pub const DM_UDEV_DISABLE_OTHER_RULES_FLAG: i32 = 8;
pub const DM_UDEV_DISABLE_LIBRARY_FALLBACK: i32 = 32;
#[doc = " Takes one message. `level` carries flags above its low three bits; the texts end with the call."]
pub type lvm2_log_fn_t = ::core::option::Option<
    unsafe extern "C" fn(
        level: ::core::ffi::c_int,
        file: *const ::core::ffi::c_char,
        line: ::core::ffi::c_int,
        dm_errno: ::core::ffi::c_int,
        message: *const ::core::ffi::c_char,
    ),
>;
#[doc = " One request to the kernel, opaque."]
#[repr(C)]
#[derive(Debug)]
pub struct dm_task {
    _unused: [u8; 0],
}
unsafe extern "C" {
    #[doc = " Sends every message of the process to one function; there is one for all handles."]
    pub fn lvm2_log_fn(log_fn: lvm2_log_fn_t);
    #[doc = " Reads the configuration of `LVM_SYSTEM_DIR` and returns a handle, or null."]
    pub fn lvm2_init() -> *mut ::core::ffi::c_void;
    #[doc = " `lvm2_init` with a smaller reserved stack. It does not make the library safe for threads."]
    pub fn lvm2_init_threaded() -> *mut ::core::ffi::c_void;
    #[doc = " Keeps dmeventd out of commands run on this handle."]
    pub fn lvm2_disable_dmeventd_monitoring(handle: *mut ::core::ffi::c_void);
    #[doc = " Sets the level of the messages; the log function gets all of them whatever is set here."]
    pub fn lvm2_log_level(handle: *mut ::core::ffi::c_void, level: ::core::ffi::c_int);
    #[doc = " Splits a command line (quotes, no escapes, fewer than 64 words), runs it, returns an `LVM2_` code."]
    pub fn lvm2_run(
        handle: *mut ::core::ffi::c_void,
        cmdline: *const ::core::ffi::c_char,
    ) -> ::core::ffi::c_int;
    #[doc = " Frees a handle."]
    pub fn lvm2_exit(handle: *mut ::core::ffi::c_void);
    #[doc = " Starts a task of a `DM_DEVICE_` kind; null when out of memory."]
    pub fn dm_task_create(type_: ::core::ffi::c_int) -> *mut dm_task;
    #[doc = " Frees a task."]
    pub fn dm_task_destroy(dmt: *mut dm_task);
    #[doc = " Names the device; the text is copied."]
    pub fn dm_task_set_name(dmt: *mut dm_task, name: *const ::core::ffi::c_char) -> ::core::ffi::c_int;
    #[doc = " Gives a device that is being made its uuid; the text is copied."]
    pub fn dm_task_set_uuid(dmt: *mut dm_task, uuid: *const ::core::ffi::c_char) -> ::core::ffi::c_int;
    #[doc = " Makes the device read-only."]
    pub fn dm_task_set_ro(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Adds a line to the table; `start` and `size` are sectors of 512 bytes; the texts are copied."]
    pub fn dm_task_add_target(
        dmt: *mut dm_task,
        start: u64,
        size: u64,
        ttype: *const ::core::ffi::c_char,
        params: *const ::core::ffi::c_char,
    ) -> ::core::ffi::c_int;
    #[doc = " The text of a message; it is copied."]
    pub fn dm_task_set_message(dmt: *mut dm_task, message: *const ::core::ffi::c_char) -> ::core::ffi::c_int;
    #[doc = " The sector whose target gets the message."]
    pub fn dm_task_set_sector(dmt: *mut dm_task, sector: u64) -> ::core::ffi::c_int;
    #[doc = " Suspends without flushing queued I/O."]
    pub fn dm_task_no_flush(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Spares the kernel counting who has the device open."]
    pub fn dm_task_no_open_count(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Suspends without freezing the filesystem."]
    pub fn dm_task_skip_lockfs(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Retries a removal for some seconds while somebody has the device open."]
    pub fn dm_task_retry_remove(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Ties the task to a udev cookie, which it makes when `*cookie` is 0."]
    pub fn dm_task_set_cookie(dmt: *mut dm_task, cookie: *mut u32, flags: u16) -> ::core::ffi::c_int;
    #[doc = " Carries the task out; 1 for success."]
    pub fn dm_task_run(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " The errno of the last ioctl of a task."]
    pub fn dm_task_get_errno(dmt: *mut dm_task) -> ::core::ffi::c_int;
    #[doc = " Turns waiting for udev on (1) or off (0) for the process."]
    pub fn dm_udev_set_sync_support(sync_with_udev: ::core::ffi::c_int);
    #[doc = " Whether waiting for udev is on and udevd runs."]
    pub fn dm_udev_get_sync_support() -> ::core::ffi::c_int;
    #[doc = " Makes a cookie, a System V semaphore that udev's rules count down."]
    pub fn dm_udev_create_cookie(cookie: *mut u32) -> ::core::ffi::c_int;
    #[doc = " Counts a cookie down by one, as the end of udev's rules does."]
    pub fn dm_udev_complete(cookie: u32) -> ::core::ffi::c_int;
    #[doc = " Waits until a cookie is counted down, then destroys it."]
    pub fn dm_udev_wait(cookie: u32) -> ::core::ffi::c_int;
}
