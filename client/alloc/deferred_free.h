/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred-free list: FIFO queue of runs (sequences of units) of a gpc_tlsf (segregated_fit.h) that
 * were freed while counted work may still use them.
 *
 * Work is counted by the caller; the tag of a run is the count at the time of the free. A run is
 * popped once the work up to its tag is done. The order is that of the pushes, so a run also waits
 * for every greater tag pushed before it. The queue stores its links and tags in the user words of
 * the runs and needs no memory of its own.
 *
 * Ownership: the caller owns the struct, which needs no freeing; a queued run stays allocated in
 * the allocator.
 * Threads: no lock inside; the owner of the allocator serializes all calls.
 */
#ifndef GPC_DEFERRED_FREE_H
#define GPC_DEFERRED_FREE_H

#include "client/alloc/segregated_fit.h"

#include <stdbool.h>
#include <stdint.h>

/* A queue; its members are internal, except units, which may be read. */
struct gpc_deferred_free {
	/* places of the first and the last run */
	uint32_t head, tail;
	uint64_t units; /* total length of the queued runs, in units of the allocator */
};

/* Initializes an empty queue. */
void gpc_deferred_free_init(struct gpc_deferred_free *queue);

/* Appends the used run that begins at place. Until it is popped, its user words belong to the
 * queue. Cannot fail. */
void gpc_deferred_free_push(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint32_t place,
			    uint64_t tag);

/* Removes the first run if its tag is at most `done`, and returns its place; the caller then frees
 * it with gpc_tlsf_free(). Returns GPC_TLSF_NONE if the queue is empty or the first run must still
 * wait. */
uint32_t gpc_deferred_free_pop(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf,
			       uint64_t done);

/* Returns whether the used run that begins at place is queued. Requires that the owner stores only
 * values below 1 << 31 in the 32-bit user words of runs that are not queued. */
bool gpc_deferred_free_contains(const struct gpc_tlsf *tlsf, uint32_t place);

#endif /* GPC_DEFERRED_FREE_H */
