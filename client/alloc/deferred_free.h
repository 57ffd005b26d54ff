/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred-free list: FIFO queue of runs (sequences of units) of an allocator (struct gpc_tlsf,
 * tlsf.h). Their owner has freed them, but earlier work may still use them.
 *
 * The caller numbers the work; the tag of a run is the number of the last work that may use it. A
 * run can be popped once all work up to its tag is done. Runs are popped in the order in which they
 * were pushed, so a run also waits for greater tags that were pushed before it. The queue stores
 * its links and tags in the user words of the runs and needs no memory of its own.
 *
 * Ownership: the caller owns the struct, which needs no freeing. A queued run stays allocated in
 * the allocator. All calls for one queue pass the same allocator.
 * Threads: no lock inside; the owner of the allocator serializes all calls.
 */
#ifndef GPC_DEFERRED_FREE_H
#define GPC_DEFERRED_FREE_H

#include "client/alloc/tlsf.h"

#include <stdbool.h>
#include <stdint.h>

/* A queue; its members are internal, except units, which may be read. */
struct gpc_deferred_free {
	/* places of the first and the last run; 0x7fffffff: the queue is empty */
	uint32_t head, tail;
	uint64_t units; /* total length of the queued runs, in units of the allocator */
};

/* Initializes an empty queue. */
void gpc_deferred_free_init(struct gpc_deferred_free *queue);

/* Appends the used run that begins at place, which must be in no queue, with its tag. Until it is
 * popped, its user words belong to the queue; afterwards they are undefined. */
void gpc_deferred_free_push(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint32_t place,
			    uint64_t tag);

/* Removes the run that was pushed first if its tag is at most `done`, and returns its place. The
 * caller then frees it with gpc_tlsf_free(). done: the work up to this number is done. Returns
 * GPC_TLSF_NONE if the queue is empty or its first run must still wait. */
uint32_t gpc_deferred_free_pop(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf,
			       uint64_t done);

/* Returns whether the run that begins at place, which must be used, is in a queue. The top bit of
 * its 32-bit user word is the marker, so the allocator's owner must store only values below 1 << 31
 * in the words of runs that are not queued. */
bool gpc_deferred_free_contains(const struct gpc_tlsf *tlsf, uint32_t place);

#endif /* GPC_DEFERRED_FREE_H */
