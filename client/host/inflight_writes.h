/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-flight writes: changes of host memory that were sent while a fetch of the worker's changes was
 * outstanding.
 *
 * The reply to the fetch does not include the changes sent after it, so bytes in both keep the sent
 * value.
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

/* Records the changes that are sent in the change record with this number, counted from 1. *changes
 * is copied. If memory is exhausted, they are not recorded, and a word that both ends change at the
 * same time may differ. */
void gpc_inflight_writes_add(struct gpc_inflight_writes **list, uint64_t record,
			     const struct gp_changes *changes);
/* Returns whether records with higher numbers than `record` changed a byte of [address, address +
 * size). */
bool gpc_inflight_writes_overlap(const struct gpc_inflight_writes *list, uint64_t record,
				 uint64_t address, uint64_t size);
/* Returns a bit mask of the bytes that records with higher numbers than `record` changed; bit i is
 * the byte at address + i. size is at most GP_CHANGES_MASKED. Returns 0 if there are none. */
uint32_t gpc_inflight_writes_mask(const struct gpc_inflight_writes *list, uint64_t record,
				  uint64_t address, uint32_t size);
/* Drops the records up to the number `records`, which the replies to all outstanding fetches
 * include. UINT64_MAX drops all. */
void gpc_inflight_writes_drop(struct gpc_inflight_writes **list, uint64_t records);

#endif /* GPC_INFLIGHT_WRITES_H */
