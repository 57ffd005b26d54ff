/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of host memory that were sent while the daemon was asked for its own: its answer does
 * not know of them, so bytes that both name keep the sent value.
 *
 * A list of the caller's, NULL at first; the caller's lock.
 */
#ifndef GPC_SENT_H
#define GPC_SENT_H

#include "protocol/host_changes.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_inflight_writes;

/* They go out in this record, counted from 1.  Without memory for it a word that both ends change
 * meanwhile may differ. */
void gpc_inflight_writes_add(struct gpc_inflight_writes **list, uint64_t record,
			     const struct gp_changes *changes);
/* Whether records after this one changed a byte of this memory. */
bool gpc_inflight_writes_overlap(const struct gpc_inflight_writes *list, uint64_t record,
				 uint64_t address, uint64_t size);
/* A bit for each byte, of at most GP_CHANGES_MASKED, that records after this one changed. */
uint32_t gpc_inflight_writes_mask(const struct gpc_inflight_writes *list, uint64_t record,
				  uint64_t address, uint32_t size);
/* All answers that are still to come know of so many records. */
void gpc_inflight_writes_drop(struct gpc_inflight_writes **list, uint64_t records);

#endif /* GPC_SENT_H */
