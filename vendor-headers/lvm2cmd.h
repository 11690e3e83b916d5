/*
 * The functions of liblvm2cmd.so.2.03 that Gabion calls. Declarations only, in our own words;
 * lvm-sys/tests compares them with the header of the installed library.
 */
#ifndef GABION_LVM2CMD_H
#define GABION_LVM2CMD_H

/** Level of a message: the command cannot go on. */
#define LVM2_LOG_FATAL 2
/** Level of a message: an error. */
#define LVM2_LOG_ERROR 3
/** Level of a message: what would go to standard output, and warnings. */
#define LVM2_LOG_PRINT 4
/** Level of a message: said with `-v`. */
#define LVM2_LOG_VERBOSE 5
/** Level of a message: said with `-vv`. */
#define LVM2_LOG_VERY_VERBOSE 6
/** Level of a message: debugging. */
#define LVM2_LOG_DEBUG 7

/** `lvm2_run` carried the command out. */
#define LVM2_COMMAND_SUCCEEDED 1
/** `lvm2_run` knows no such command. */
#define LVM2_NO_SUCH_COMMAND 2
/** `lvm2_run` did not understand the options. */
#define LVM2_INVALID_PARAMETERS 3
/** `lvm2_run` could not start the library. */
#define LVM2_INIT_FAILED 4
/** `lvm2_run` failed; only the messages tell why. */
#define LVM2_PROCESSING_FAILED 5

/** Takes one message. `level` carries flags above its low three bits; the texts end with the call. */
typedef void (*lvm2_log_fn_t)(int level, const char *file, int line, int dm_errno, const char *message);

/** Sends every message of the process to one function; there is one for all handles. */
void lvm2_log_fn(lvm2_log_fn_t log_fn);

/** Reads the configuration of `LVM_SYSTEM_DIR` and returns a handle, or null. */
void *lvm2_init(void);

/** `lvm2_init` with a smaller reserved stack. It does not make the library safe for threads. */
void *lvm2_init_threaded(void);

/** Keeps dmeventd out of commands run on this handle. */
void lvm2_disable_dmeventd_monitoring(void *handle);

/** Sets the level of the messages; the log function gets all of them whatever is set here. */
void lvm2_log_level(void *handle, int level);

/** Splits a command line (quotes, no escapes, fewer than 64 words), runs it, returns an `LVM2_` code. */
int lvm2_run(void *handle, const char *cmdline);

/** Frees a handle. */
void lvm2_exit(void *handle);

#endif
