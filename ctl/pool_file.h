/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that commands without a daemon make: where they are, and how they are written.
 *
 * Functions that return an int return 0, or -1 and standard error has said why.  One thread.
 */
#ifndef CTL_POOL_FILE_H
#define CTL_POOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CTL_PATH_MAX 4096
/* What a prepared file has behind its path until it takes its place. */
#define CTL_NEW_SUFFIX ".new"

/* An option and its value in the words of a command, as --name VALUE or --name=VALUE. */
struct ctl_option {
	const char *name;   /* "--expires" */
	const char *letter; /* "-e", or NULL */
	const char **value; /* NULL: it has none, and `given` is set */
	bool *is_given;
};

/* Takes the options out of the words, of which -- ends them.  -1: one of them is none of these, or
 * its value is missing. */
int ctl_parse_options(const struct ctl_option *options, size_t option_count, int *count,
		      char **argv);

/* The folder of the pool's files: `given`, or the usual one. */
int ctl_pool_folder(const char *is_given, char *path, size_t size);
/* Who makes something in it, and is not root, may have meant the folder of the machine's daemon,
 * where there is one: a warning says so. */
void ctl_warn_own_folder(const char *is_given, const char *path);
/* The path of a file in it. */
int ctl_pool_file(const char *folder, const char *name, char *path, size_t size);
/* Makes the folder and those above it that are missing.  The usual one of root's is given to the
 * daemon's group, where there is one. */
int ctl_make_folder(const char *path);

/* Writes a file as a whole: it is there with all of this, or not at all.  Without `force` one that
 * is there already stays. */
int ctl_write_file(const char *path, const void *data, size_t size, mode_t mode, bool force);
/* The same in two steps, for files that must fit one another: first all are written, then each
 * takes its place, or is dropped. */
int ctl_prepare_file(const char *path, const void *data, size_t size, mode_t mode);
int ctl_commit_file(const char *path, bool force);
void ctl_drop_file(const char *path);

/* 90s, 30m, 12h, 30d, 2w, 1y or never (INT64_MAX), as a number of seconds. */
bool ctl_parse_duration(const char *text, int64_t *seconds_p);

#endif /* CTL_POOL_FILE_H */
