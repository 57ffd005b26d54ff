/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-flight writes: changes of host memory that were sent while a fetch of the daemon's changes was
 * outstanding.
 *
 * The reply to that fetch does not include them, so bytes named by both keep the sent value.
 * Ownership: the list belongs to the caller and is initially NULL.
 * Threads: guarded by the caller's lock.
 */
#ifndef GPC_INFLIGHT_WRITES_H
#define GPC_INFLIGHT_WRITES_H

#include "protocol/host_changes.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_inflight_writes;

/* Records the changes that are sent in this record, counted from 1. If memory is exhausted, they
 * are not recorded, and a word that both ends change at the same time may differ. */
void gpc_inflight_writes_add(struct gpc_inflight_writes **list, uint64_t record,
			     const struct gp_changes *changes);
/* Returns whether records after this one changed a byte of this memory. */
bool gpc_inflight_writes_overlap(const struct gpc_inflight_writes *list, uint64_t record,
				 uint64_t address, uint64_t size);
/* Returns a bit mask of the bytes that records after this one changed; size is at most
 * GP_CHANGES_MASKED. */
uint32_t gpc_inflight_writes_mask(const struct gpc_inflight_writes *list, uint64_t record,
				  uint64_t address, uint32_t size);
/* Drops records that all outstanding replies include: those up to this number. */
void gpc_inflight_writes_drop(struct gpc_inflight_writes **list, uint64_t records);

#endif /* GPC_INFLIGHT_WRITES_H */
