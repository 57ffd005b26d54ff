/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that gpupoolctl creates in the pool's folder: paths, options of the commands, and atomic
 * writing.
 *
 * Threads: one.
 * Errors: 0; or -1 after a message on standard error.
 */
#ifndef CTL_POOL_FILE_H
#define CTL_POOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CTL_PATH_MAX 4096
/* Suffix of a prepared file until it is renamed. */
#define CTL_NEW_SUFFIX ".new"

/* An option of a command, given as --name VALUE or --name=VALUE. */
struct ctl_option {
	const char *name;   /* "--expires" */
	const char *letter; /* "-e", or NULL */
	const char **value; /* NULL: the option has no value, and sets is_given */
	bool *is_given;
};

/* Removes the options from the arguments; "--" ends them. Returns -1 for an unknown option or a
 * missing value. */
int ctl_parse_options(const struct ctl_option *options, size_t option_count, int *count,
		      char **argv);

/* Writes the pool's folder: is_given (--directory), or the default one. */
int ctl_pool_folder(const char *is_given, char *path, size_t size);
/* Warns a user other than root, who creates a file in the default folder, if the system's daemon
 * has another folder. */
void ctl_warn_own_folder(const char *is_given, const char *path);
/* Writes the path of a file in the folder. */
int ctl_pool_file(const char *folder, const char *name, char *path, size_t size);
/* Creates the folder and its parents. Root's default folder gets the daemon's group if that
 * exists. */
int ctl_make_folder(const char *path);

/* Writes a file atomically: it has all of the data, or is not changed. Without `force` an existing
 * file is an error. */
int ctl_write_file(const char *path, const void *data, size_t size, mode_t mode, bool force);
/* The same in two steps, for files that must match: ctl_prepare_file() for each, then
 * ctl_commit_file() renames it, or ctl_drop_file() removes it. */
int ctl_prepare_file(const char *path, const void *data, size_t size, mode_t mode);
int ctl_commit_file(const char *path, bool force);
void ctl_drop_file(const char *path);

/* Parses 90s, 30m, 12h, 30d, 2w, 1y or never (INT64_MAX) into seconds. Returns false if the text is
 * invalid. */
bool ctl_parse_duration(const char *text, int64_t *seconds_p);

#endif /* CTL_POOL_FILE_H */
