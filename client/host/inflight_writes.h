/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-flight writes: the addresses of changes of host memory that were sent while a fetch of the
 * worker's changes (coherence_internal.h) was outstanding.
 *
 * The reply to such a fetch may not include them, so it may contain older bytes at these addresses.
 * The caller uses the list to retain the sent bytes there.
 *
 * A change record (gpHostWrite) has a number: those of gpc_coherence.writes (coherence_internal.h),
 * from 1. `record` in the queries is the number of change records that the worker had stored before
 * it scanned for the reply.
 *
 * Ownership: the caller owns the list, which is initially NULL (empty); gpc_inflight_writes_drop()
 * frees its elements.
 * Threads: guarded by the caller's lock.
 */
#ifndef GPC_INFLIGHT_WRITES_H
#define GPC_INFLIGHT_WRITES_H

#include "protocol/host_changes.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_inflight_writes;

/* Adds the changes that the change record with this number carries. May be called before the record
 * is posted. Their addresses and sizes are copied, not their bytes. If memory is exhausted, they
 * are not added: a word that both ends change at the same time may then differ afterwards. */
void gpc_inflight_writes_add(struct gpc_inflight_writes **list, uint64_t record,
			     const struct gp_changes *changes);
/* Returns whether change records with higher numbers than `record` changed a byte of [address,
 * address + size). */
bool gpc_inflight_writes_overlap(const struct gpc_inflight_writes *list, uint64_t record,
				 uint64_t address, uint64_t size);
/* Returns a bit mask of the bytes that change records with higher numbers than `record` changed:
 * bit i is the byte at address + i. size: at most GP_CHANGES_MASKED (protocol/host_changes.h).
 * Returns 0 if there are none. */
uint32_t gpc_inflight_writes_mask(const struct gpc_inflight_writes *list, uint64_t record,
				  uint64_t address, uint32_t size);
/* Drops the change records up to the number `records`, which the replies to all outstanding fetches
 * include. UINT64_MAX drops all. */
void gpc_inflight_writes_drop(struct gpc_inflight_writes **list, uint64_t records);

#endif /* GPC_INFLIGHT_WRITES_H */
