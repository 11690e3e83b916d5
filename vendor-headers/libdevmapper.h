/*
 * The part of libdevmapper.so.1.02.1 with which Gabion changes device-mapper tables. Declarations only, in
 * our own words; lvm-sys/tests compares them with the header of the installed library.
 *
 * Nothing here takes or returns a structure whose size may grow with a symbol version (`struct dm_info` does):
 * what the kernel holds is read by raw ioctls elsewhere.
 */
#ifndef GABION_LIBDEVMAPPER_H
#define GABION_LIBDEVMAPPER_H

#include <stdint.h>

/** Task: make a device without a table. */
#define DM_DEVICE_CREATE 0
/** Task: load a table into the inactive slot. */
#define DM_DEVICE_RELOAD 1
/** Task: remove a device. */
#define DM_DEVICE_REMOVE 2
/** Task: suspend a device. */
#define DM_DEVICE_SUSPEND 4
/** Task: make the inactive table live, or let I/O run again. */
#define DM_DEVICE_RESUME 5
/** Task: empty the inactive slot. */
#define DM_DEVICE_CLEAR 14
/** Task: send a message to a target. */
#define DM_DEVICE_TARGET_MSG 17

/** Cookie flag: the rules of device-mapper itself leave this device alone. */
#define DM_UDEV_DISABLE_DM_RULES_FLAG 1
/** Cookie flag: the rules of LVM and its like leave this device alone. */
#define DM_UDEV_DISABLE_SUBSYSTEM_RULES_FLAG 2
/** Cookie flag: no links under `/dev/disk`. */
#define DM_UDEV_DISABLE_DISK_RULES_FLAG 4
/** Cookie flag: all other rules leave this device alone. */
#define DM_UDEV_DISABLE_OTHER_RULES_FLAG 8
/** Cookie flag: libdevmapper makes no node where udev did not. */
#define DM_UDEV_DISABLE_LIBRARY_FALLBACK 32

/** One request to the kernel, opaque. */
struct dm_task;

/** Starts a task of a `DM_DEVICE_` kind; null when out of memory. */
struct dm_task *dm_task_create(int type);
/** Frees a task. */
void dm_task_destroy(struct dm_task *dmt);
/** Names the device; the text is copied. */
int dm_task_set_name(struct dm_task *dmt, const char *name);
/** Gives a device that is being made its uuid; the text is copied. */
int dm_task_set_uuid(struct dm_task *dmt, const char *uuid);
/** Makes the device read-only. */
int dm_task_set_ro(struct dm_task *dmt);
/** Adds a line to the table; `start` and `size` are sectors of 512 bytes; the texts are copied. */
int dm_task_add_target(struct dm_task *dmt, uint64_t start, uint64_t size, const char *ttype, const char *params);
/** The text of a message; it is copied. */
int dm_task_set_message(struct dm_task *dmt, const char *message);
/** The sector whose target gets the message. */
int dm_task_set_sector(struct dm_task *dmt, uint64_t sector);
/** Suspends without flushing queued I/O. */
int dm_task_no_flush(struct dm_task *dmt);
/** Spares the kernel counting who has the device open. */
int dm_task_no_open_count(struct dm_task *dmt);
/** Suspends without freezing the filesystem. */
int dm_task_skip_lockfs(struct dm_task *dmt);
/** Retries a removal for some seconds while somebody has the device open. */
int dm_task_retry_remove(struct dm_task *dmt);
/** Ties the task to a udev cookie, which it makes when `*cookie` is 0. */
int dm_task_set_cookie(struct dm_task *dmt, uint32_t *cookie, uint16_t flags);
/** Carries the task out; 1 for success. */
int dm_task_run(struct dm_task *dmt);
/** The errno of the last ioctl of a task. */
int dm_task_get_errno(struct dm_task *dmt);

/** Turns waiting for udev on (1) or off (0) for the process. */
void dm_udev_set_sync_support(int sync_with_udev);
/** Whether waiting for udev is on and udevd runs. */
int dm_udev_get_sync_support(void);
/** Makes a cookie, a System V semaphore that udev's rules count down. */
int dm_udev_create_cookie(uint32_t *cookie);
/** Counts a cookie down by one, as the end of udev's rules does. */
int dm_udev_complete(uint32_t cookie);
/** Waits until a cookie is counted down, then destroys it. */
int dm_udev_wait(uint32_t cookie);

#endif
