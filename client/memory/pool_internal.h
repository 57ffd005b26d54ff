/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping and unmapping of a pool's memory (pool.h), for pool.c and pool_reclaim.c only.
 *
 * Threads, errors and units: as in pool.h.
 */
#ifndef GPC_POOL_INTERNAL_H
#define GPC_POOL_INTERNAL_H

#include "client/memory/pool.h"

/* Called with the lock held: unmaps one free mapping of a pool, if at least `keep` bytes stay
 * mapped without it. keep_one: one free mapping may be retained nevertheless. Does not wait.
 * Returns true, or false if there is no such mapping. */
bool gpc_pool_release_mapping(struct gpc_pool *pool, uint64_t keep, bool keep_one);
/* Called with the lock held: makes freed memory available to all streams if the work posted before
 * its free is known to be done. Does not query the daemon. */
void gpc_pool_reap(struct gpc_pool *pool);
/* Called with the lock held: updates the count of cached memory (memory.h) with the pool's unused
 * bytes beyond the threshold. */
void gpc_pool_count_spare(struct gpc_pool *pool);
/* Called with the lock held: frees destroyed pools that waited only for work that is now done. Does
 * not query the daemon. */
void gpc_pools_drop_unused(void);

/* Called without the lock: maps at least `size` bytes for the pool's blocks and stores
 * the mapping in *range; the caller unmaps it with gpc_pool_unmap(). May wait for the daemon.
 * *range is undefined after an error. */
CUresult gpc_pool_map(struct gpc_pool *pool, uint64_t size, struct gpc_heap_range *range);
/* Called with or without the lock: unmaps a mapping of gpc_pool_map(), after the work
 * posted so far. Does not wait. */
void gpc_pool_unmap(const struct gpc_pool *pool, const struct gpc_heap_range *range);
/* Called without the lock: stores the sizes to map for a block of `size` bytes, the
 * preferred size in *wanted_p and the required size in *needed_p. *needed_p is 0 if the pool's
 * maximum size does not allow that. */
void gpc_pool_sizes(struct gpc_pool *pool, uint64_t size, uint64_t *wanted_p, uint64_t *needed_p);

#endif /* GPC_POOL_INTERNAL_H */
