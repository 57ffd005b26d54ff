/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory used by a session's handles and the objects that they refer to, charged to the
 * ledger.
 *
 * Memory of an object that the GPU may still use stays charged until another thread has destroyed
 * the object: the executor defers it, and that thread completes it.
 *
 * Threads: gpd_name_memory_complete() from any thread; the others from the session's executor.
 */
#ifndef GPD_NAME_MEMORY_H
#define GPD_NAME_MEMORY_H

#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialized: nothing is charged to a ledger, and there is no limit. */
struct gpd_name_memory {
	struct gpd_ledger *ledger;
	struct gpd_ledger_session *line;
	_Atomic uint64_t used;     /* bytes */
	_Atomic uint64_t deferred; /* part of `used`: objects that another thread destroys */
};

/* Charges bytes. Returns false, and charges nothing, if the session's limit is reached. */
bool gpd_name_memory_add(struct gpd_name_memory *memory, uint64_t bytes);
/* Uncharges bytes that were added before. */
void gpd_name_memory_remove(struct gpd_name_memory *memory, uint64_t bytes);
/* Marks bytes that were added before as owned by another thread, which calls
 * gpd_name_memory_complete() when it has destroyed the object. */
void gpd_name_memory_defer(struct gpd_name_memory *memory, uint64_t bytes);
/* Uncharges deferred bytes. */
void gpd_name_memory_complete(struct gpd_name_memory *memory, uint64_t bytes);
/* Uncharges everything, including deferred bytes, and resets the struct. */
void gpd_name_memory_fini(struct gpd_name_memory *memory);

#endif /* GPD_NAME_MEMORY_H */
