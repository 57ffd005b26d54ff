/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred-free list: FIFO queue of runs of a gpc_tlsf that were freed while counted work may still
 * use them.
 *
 * A run is popped once the work up to its tag is done. The order is that of the pushes, so a run
 * also waits for every greater tag pushed before it. The queue stores its links and tags in the
 * user words of the runs and needs no memory of its own.
 *
 * Threads: no lock inside; the owner of the allocator serializes all calls.
 */
#ifndef GPC_DEFERRED_FREE_H
#define GPC_DEFERRED_FREE_H

#include "client/alloc/segregated_fit.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_deferred_free {
	uint32_t head, tail;
	uint64_t units; /* sum over all queued runs */
};

void gpc_deferred_free_init(struct gpc_deferred_free *queue);

/* Appends a used run. Until it is popped, its user words belong to the queue. */
void gpc_deferred_free_push(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint32_t place,
			    uint64_t tag);

/* Pops the first run if its tag is at most `done`; the caller then frees it. Returns GPC_TLSF_NONE
 * if the queue is empty or the first run must still wait. */
uint32_t gpc_deferred_free_pop(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf,
			       uint64_t done);

/* Returns whether a used run is queued. Requires that the owner stores only values below 1 << 31 in
 * the 32-bit user words of runs that are not queued. */
bool gpc_deferred_free_contains(const struct gpc_tlsf *tlsf, uint32_t place);

#endif /* GPC_DEFERRED_FREE_H */
