/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant set --save: what is set goes into the daemon's configuration file, too, whose other lines
 * and comments stay as they are.
 *
 * In two steps, so that what cannot be written is not set, and what the daemon refuses is not
 * written.  0; or -1, and standard error says why.  One thread.
 */
#ifndef CTL_SAVE_H
#define CTL_SAVE_H

#include "ctl/ask.h"

#include <stddef.h>

struct ctl_save {
	char *path;
	char *text; /* what the file is to be */
	size_t size;
	int lock; /* descriptor; 0: none */
};

/* Reads the file that the daemon has read, and changes it in memory: settings as in the words of
 * the command, gpu=N among them. */
int ctl_save_prepare(const struct ctl *ctl, const char *tenant, int count, char **argv,
		     struct ctl_save *save);
int ctl_save_write(const struct ctl_save *save);
void ctl_save_drop(struct ctl_save *save);

/* For the tests: the text with "key = value" in the section of this tenant; the caller frees it.
 * NULL: no memory. */
char *ctl_save_edit(const char *text, const char *tenant, const char *key, const char *value);

#endif /* CTL_SAVE_H */
