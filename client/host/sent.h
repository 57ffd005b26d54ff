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

/* They go out in this record, counted from 1.  Without memory for it a word that both ends change
 * meanwhile may differ. */
void gpc_sent_remember(struct gpc_sent **list, uint64_t record, const struct gp_changes *changes);
/* An answer says this, which knows of so many records: what was sent in later ones is put in
 * place. */
void gpc_sent_keep(const struct gpc_sent *list, uint64_t records, uint64_t address, uint8_t *bytes,
		   uint64_t size);
/* All answers that are still to come know of so many records. */
void gpc_sent_forget(struct gpc_sent **list, uint64_t records);

#endif /* GPC_SENT_H */
