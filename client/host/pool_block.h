/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory blocks that pools allocate and free in stream order (client/memory/pool.h).
 *
 * A freed block no longer belongs to the program, but stays mapped until all work and host
 * functions issued before the free have completed or the pool reuses its bytes, which it does only
 * then.
 * Threads: any; the pool serializes the calls for one block.
 */
#ifndef GPC_POOL_BLOCK_H
#define GPC_POOL_BLOCK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_space_free_order;

/* Registers a part of a pool's mapping as a block of the program. exchanged: the mapping is part of
 * a file that other processes may have too. Returns 0 or -ENOMEM. */
GP_MUST_CHECK int gpc_host_pooled_create(struct gpc_context *context, uint64_t address,
					 uint64_t size, uint64_t id, void *pool, bool exchanged);
/* Frees the block after the work that `end` describes; at once if memory is exhausted. */
void gpc_host_pooled_free(uint64_t address, const struct gpc_space_free_order *end);

/* Selects freed blocks by completed work or by address, with one of these groups of members; the
 * others are 0. */
struct gpc_host_pooled_query {
	const void *session; /* work of the session up to `done` */
	uint64_t done;
	uint64_t stream;     /* frees up to `number` on the stream */
	const void *context; /* frees up to `number` on all streams of the context and on none */
	uint64_t number;
	uint64_t base, size; /* blocks that overlap the range */
};

/* Destroys the freed blocks that the query selects. See pool_space.h. */
void gpc_host_pooled_reap(const struct gpc_host_pooled_query *query);

#endif /* GPC_POOL_BLOCK_H */
