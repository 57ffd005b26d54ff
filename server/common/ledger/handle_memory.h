/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that a session's handles (worker/session/handle.h) and their objects use, charged to
 * the session's entry in the ledger (ledger.h).
 *
 * Memory of an object that the GPU may still use stays charged until another thread has destroyed
 * the object: the executor calls gpd_handle_memory_defer(), and the destroying thread
 * gpd_handle_memory_complete().
 *
 * Ownership: embedded in the session. The ledger and its entry must stay valid until
 * gpd_handle_memory_fini().
 * Threads: gpd_handle_memory_complete() from any thread; the other functions from the session's
 * executor.
 */
#ifndef GPD_HANDLE_MEMORY_H
#define GPD_HANDLE_MEMORY_H

#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/* The charge of one session. Initialized to zeros, it charges no ledger and has no limit; the
 * session sets ledger and entry. */
struct gpd_handle_memory {
	struct gpd_ledger *ledger;        /* NULL: bytes are only counted here */
	struct gpd_ledger_session *entry; /* the session's entry in the ledger */
	_Atomic uint64_t used;            /* bytes charged at present */
	/* Bytes, part of `used`: of objects that another thread destroys. */
	_Atomic uint64_t deferred;
};

/* Charges bytes. Returns false, and charges nothing, if gpd_ledger_charge_host() (ledger.h) refuses
 * them. Without a ledger it always returns true. */
bool gpd_handle_memory_add(struct gpd_handle_memory *memory, uint64_t bytes);
/* Uncharges bytes that were added before. */
void gpd_handle_memory_remove(struct gpd_handle_memory *memory, uint64_t bytes);
/* Marks bytes that were added before as belonging to an object that another thread destroys; that
 * thread calls gpd_handle_memory_complete() with the same number afterwards. */
void gpd_handle_memory_defer(struct gpd_handle_memory *memory, uint64_t bytes);
/* Uncharges bytes that were passed to gpd_handle_memory_defer(). */
void gpd_handle_memory_complete(struct gpd_handle_memory *memory, uint64_t bytes);
/* Uncharges everything, including deferred bytes, and resets the struct to zeros. No thread may
 * call gpd_handle_memory_complete() afterwards. */
void gpd_handle_memory_fini(struct gpd_handle_memory *memory);

#endif /* GPD_HANDLE_MEMORY_H */
