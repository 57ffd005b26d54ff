/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of host memory that pools give out and take back in stream order (client/memory/pool.h).
 *
 * What was freed is no block of the program's any more, but stays as it is for the work and the
 * host functions before the free, until those are known to be done or its bytes are given to
 * somebody else, which the pool does only then.  The pool locks; any thread may call.
 */
#ifndef GPC_HOST_POOLED_H
#define GPC_HOST_POOLED_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_space_free_order;

/* What of a pool's mapping is the program's from now on; exchanged: the mapping is part of a file
 * that other processes may have, too.  -ENOMEM. */
GP_MUST_CHECK int gpc_host_pooled_create(struct gpc_context *context, uint64_t address,
					 uint64_t size, uint64_t id, void *pool, bool exchanged);
/* It is freed.  Without memory to remember that, at once. */
void gpc_host_pooled_free(uint64_t address, const struct gpc_space_free_order *end);

/* What was freed behind work of the session up to `done`, or on a stream, or on all of a context
 * and on none, by the frees up to this number, is not used any more; see pool_space.h. */
void gpc_host_pooled_reap(const void *session, uint64_t done);
void gpc_host_pooled_reap_stream(uint64_t stream, uint64_t number);
void gpc_host_pooled_reap_context(const void *context, uint64_t number);
/* And what lies there. */
void gpc_host_pooled_reap_range(uint64_t base, uint64_t size);

#endif /* GPC_HOST_POOLED_H */
