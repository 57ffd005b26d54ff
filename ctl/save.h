/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant set --save: writes the settings into the daemon's configuration file as well, preserving
 * its other lines and comments.
 *
 * Usage has two steps: prepare before the request and write after it, so that a setting that cannot
 * be saved is not applied, and one that the daemon rejects is not saved.
 *
 * Ownership: ctl_save_drop() frees the struct's members and releases the lock.
 * Threads: one.
 * Errors: 0; or -1 after a message on standard error.
 */
#ifndef CTL_SAVE_H
#define CTL_SAVE_H

#include "ctl/request.h"

#include <stddef.h>

struct ctl_save {
	char *path;
	char *text; /* new content of the file */
	size_t size;
	int lock; /* descriptor of the file's lock; 0: none */
};

/* Locks and reads the configuration that the daemon has read, and edits it in memory: settings as
 * in the arguments of the command, including gpu=N. */
int ctl_save_prepare(const struct ctl *ctl, const char *tenant, int count, char **argv,
		     struct ctl_save *save);
int ctl_save_write(const struct ctl_save *save);
void ctl_save_drop(struct ctl_save *save);

/* Exported for the tests: returns the text with "key = value" in the section of this tenant, which
 * the caller frees; NULL without memory. */
char *ctl_save_edit(const char *text, const char *tenant, const char *key, const char *value);

#endif /* CTL_SAVE_H */
