/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of tenant set --save: writes the settings into the daemon's configuration file as
 * well, preserving its other lines and comments.
 *
 * Order: ctl_save_prepare(), the request to the daemon, ctl_save_write() if the daemon has accepted
 * it, ctl_save_drop(). So a setting that cannot be saved is not applied, and a setting that the
 * daemon rejects is not saved. The file's lock is held meanwhile.
 *
 * Ownership: the caller provides struct ctl_save, zeroed; ctl_save_drop() frees its members and
 * releases the lock, and must be called once.
 * Threads: called by the main thread only.
 * Errors: functions that return int return 0; or -1 after a message on standard error.
 */
#ifndef CTL_SAVE_H
#define CTL_SAVE_H

#include "ctl/request.h"

#include <stddef.h>

/* An edited configuration that is not written yet. */
struct ctl_save {
	/* Path of the configuration file; owned. */
	char *path;
	char *text;  /* new content of the file; owned */
	size_t size; /* of text, without its terminating zero */
	int lock;    /* descriptor that holds the file's lock; 0 or less: none */
};

/* Queries the daemon for the path of its configuration, locks and reads the file, and edits it in
 * memory. argv: settings as in the arguments of the command, including gpu=N. Waits for the file's
 * lock. A result that the daemon would reject is an error. The caller calls ctl_save_drop() in any
 * case. */
int ctl_save_prepare(const struct ctl *ctl, const char *tenant, int count, char **argv,
		     struct ctl_save *save);
/* Replaces the file by the edited text, atomically (gpd_shared_file_replace() of shared_file.h).
 * Called after ctl_save_prepare() has returned 0. */
int ctl_save_write(const struct ctl_save *save);
/* Releases the lock and frees the members. */
void ctl_save_drop(struct ctl_save *save);

/* Exported for the tests: returns a copy of the text in which the section of this tenant contains
 * "key = value"; the key or the section is added if it is missing. The caller frees it with free().
 * NULL: out of memory. */
char *ctl_save_edit(const char *text, const char *tenant, const char *key, const char *value);

#endif /* CTL_SAVE_H */
