/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that gpupoolctl creates in the pool's folder: their paths and atomic writing. Also parsers
 * for options and durations of the commands that create them.
 *
 * Ownership: arguments are borrowed; paths are written to buffers of the caller.
 * Threads: called by the main thread only.
 * Errors: functions that return int return 0; or -1 after a message on standard error.
 */
#ifndef CTL_POOL_FILE_H
#define CTL_POOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Size in bytes of a path's buffer, including the terminating zero. */
#define CTL_PATH_MAX 4096
/* Suffix of a prepared file's name until it is renamed. */
#define CTL_NEW_SUFFIX ".new"

/* An option of a command, given as --name VALUE or --name=VALUE. */
struct ctl_option {
	const char *name;   /* long form, such as "--expires" */
	const char *letter; /* short form, such as "-e"; NULL: none */
	/* Receives the value, which stays in argv. NULL: the option has no value, and sets
	 * *is_given. */
	const char **value;
	bool *is_given; /* set to true if the option is given; used only if value is NULL */
};

/* Parses the options, which may follow other arguments, and removes them from argv and *count; "--"
 * ends them and is removed as well. An option that is not given leaves *value or *is_given
 * unchanged; of one that is given twice the last value counts. Returns -1 for an unknown option, a
 * missing value, or a value of an option without one; argv is then undefined. */
int ctl_parse_options(const struct ctl_option *options, size_t option_count, int *count,
		      char **argv);

/* Writes the path of the pool's folder. is_given: value of --directory; NULL: the default folder
 * (pool_folder.h). Returns -1 if the value is empty or too long, or there is no default folder. */
int ctl_pool_folder(const char *is_given, char *path, size_t size);
/* Warns on standard error that a file at `path` is not for the system's daemon: if a user other
 * than root uses the own default folder and the system's folder exists. is_given: value of
 * --directory, or NULL. */
void ctl_warn_own_folder(const char *is_given, const char *path);
/* Writes the path of the file `name` in the folder. */
int ctl_pool_file(const char *folder, const char *name, char *path, size_t size);
/* Creates the folder and its parents, as far as they do not exist: for root with mode 0755, else
 * 0700. If root creates its default folder, the folder gets the daemon's group, if that exists, and
 * mode 02750. After an error the folders created before stay. */
int ctl_make_folder(const char *path);

/* Writes a file atomically: it then has all of the data, which is on disk, or is unchanged after an
 * error. Without `force` an existing file is an error; with it, a symbolic link is replaced, not
 * its target. mode: of the file, reduced by the umask. */
int ctl_write_file(const char *path, const void *data, size_t size, mode_t mode, bool force);
/* Writes the data to a prepared file, `path` with CTL_NEW_SUFFIX, which replaces a file of that
 * name. This is for files that must match: after ctl_prepare_file() for each of them,
 * ctl_commit_file() or ctl_drop_file() is called for each. On failure there is no prepared file. */
int ctl_prepare_file(const char *path, const void *data, size_t size, mode_t mode);
/* Renames a prepared file to `path`; on failure removes the prepared file. Without `force` an
 * existing file is an error. */
int ctl_commit_file(const char *path, bool force);
/* Removes a prepared file. */
void ctl_drop_file(const char *path);

/* Parses a duration such as 90s, 30m, 12h, 30d, 2w or 1y into seconds; the number is from 1 to
 * 999999. The word "never" gives INT64_MAX. Returns true, or false if the text is invalid. */
bool ctl_parse_duration(const char *text, int64_t *seconds_p);

#endif /* CTL_POOL_FILE_H */
