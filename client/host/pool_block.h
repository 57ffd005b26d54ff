/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory blocks that pools allocate and free in stream order (client/memory/pool.h).
 *
 * A freed block no longer belongs to the program, but stays mapped for kernels until all work and
 * host functions issued before the free have completed. Only then does the pool reuse its bytes.
 *
 * Ownership: host_block.h's registry owns a block until it is freed; then this module does, until
 * the block is destroyed. The pool owns the memory.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); the pool serializes the calls for one block.
 */
#ifndef GPC_POOL_BLOCK_H
#define GPC_POOL_BLOCK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_space_free_order;

/* Registers a part of a pool's mapping as a block of the program. Destroys freed blocks that
 * overlap it, which may wait for copies in flight. id: CU_POINTER_ATTRIBUTE_BUFFER_ID. pool: the
 * CUmemoryPool. exchanged: the mapping is part of a file that other processes may have mapped too.
 * Returns 0, -ENOMEM, or GP_E_INVALID if a block of the program overlaps. */
GP_MUST_CHECK int gpc_host_pooled_create(struct gpc_context *context, uint64_t address,
					 uint64_t size, uint64_t id, void *pool, bool exchanged);
/* Frees the block that starts at the address. It is destroyed by gpc_host_pooled_reap() after the
 * work that *end (client/alloc/pool_space.h) describes, or at once if that work is done or memory
 * is exhausted. *end is copied. Has no effect if there is no such block. */
void gpc_host_pooled_free(uint64_t address, const struct gpc_space_free_order *end);

/* Selects freed blocks, by completed work or by address. One group of members is set, and the
 * others are 0: session and done; stream and number; context and number; or base and size. */
struct gpc_host_pooled_query {
	/* struct gpc_session whose work up to the count `done` is complete
	 * (gpc_session_work_done(), client/session/session.h); NULL: not this group */
	const void *session;
	uint64_t done;
	/* number of a stream (gpc_stream.number) whose frees with sequence numbers up to `number`
	 * are complete; 0: not this group */
	uint64_t stream;
	/* struct gpc_context whose frees with sequence numbers up to `number` are complete, on all
	 * its streams, and also frees in no stream's order; NULL: not this group */
	const void *context;
	uint64_t number;     /* sequence number of a free (struct gpc_space_free_order) */
	uint64_t base, size; /* range that the blocks overlap; size 0: not this group */
};

/* Destroys the freed blocks that the query selects. May wait, without limit, for copies in flight
 * to or from them. */
void gpc_host_pooled_reap(const struct gpc_host_pooled_query *query);

#endif /* GPC_POOL_BLOCK_H */
