/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a gpc_tlsf that were given back but may still be in use, by work that is counted.  They
 * wait in the order in which they came: one behind a greater tag waits for that, too.  Places and
 * tags are kept in the runs' own words and values.  Not locked: the owner of the fit does that.
 */
#ifndef GPC_FIT_QUEUE_H
#define GPC_FIT_QUEUE_H

#include "client/alloc/fit.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_deferred_free {
	uint32_t head, tail;
	uint64_t units; /* of all that wait */
};

void gpc_deferred_free_init(struct gpc_deferred_free *queue);

/* The run's word and value are the queue's until it is popped. */
void gpc_deferred_free_push(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint32_t place,
			    uint64_t tag);

/* The first run, if its tag is at most `done`, for the caller to free; else GPC_TLSF_NONE. */
uint32_t gpc_deferred_free_pop(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf,
			       uint64_t done);

/* Whether a run waits in a queue.  Others' words must be below 1 << 31. */
bool gpc_deferred_free_contains(const struct gpc_tlsf *tlsf, uint32_t place);

#endif /* GPC_FIT_QUEUE_H */
