/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of host memory that were sent while the daemon was asked for its own: its answer does
 * not know of them, so where both name a word the sent one stays.
 *
 * A list of the caller's, NULL at first; the caller's lock.
 */
#ifndef GPC_SENT_H
#define GPC_SENT_H

#include "protocol/host_changes.h"

#include <stdint.h>

struct gpc_sent;

/* Behind so many questions.  Without memory for it a word that both ends change meanwhile may
 * differ. */
void gpc_sent_remember(struct gpc_sent **list, uint64_t questions,
		       const struct gp_changes *changes);
/* The answer to that question says this: what was sent behind it is put in place. */
void gpc_sent_keep(const struct gpc_sent *list, uint64_t question, uint64_t address, uint8_t *bytes,
		   uint64_t size);
/* What was sent before this question is in all answers that are still to come. */
void gpc_sent_forget(struct gpc_sent **list, uint64_t question);

#endif /* GPC_SENT_H */
