/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings that nothing uses and that are kept to be used again, oldest first: numbers only.  The
 * caller owns the memory behind them, and unmaps what it takes out for that.  Any thread may call.
 */
#ifndef GPC_KEPT_H
#define GPC_KEPT_H

#include "base/status.h"
#include "client/alloc/heap.h"
#include "client/base/ranges.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define GPC_KEPT_COUNT 64

struct gpc_kept_mapping {
	struct gpc_heap_range range;
	void *owner;  /* a device: memory of another is of no use */
	uint64_t tag; /* work up to this count may use it */
};

struct gpc_kept {
	pthread_mutex_t lock;
	unsigned int count;
	uint64_t bytes;
	struct gpc_kept_mapping mappings[GPC_KEPT_COUNT];
	struct gpc_ranges refused; /* by base, of one byte each */
};

void gpc_kept_init(struct gpc_kept *kept);

/* false: there is no place for it, or it was refused. */
bool gpc_kept_put(struct gpc_kept *kept, const struct gpc_kept_mapping *mapping);

/* The mapping that begins at base is not kept the next time.  -ENOMEM. */
GP_MUST_CHECK int gpc_kept_refuse(struct gpc_kept *kept, uint64_t base);

/* Takes out the oldest, if there are more bytes than these, or no place for one more; with 0, any.
 * false: there is none. */
bool gpc_kept_take_excess(struct gpc_kept *kept, uint64_t bytes, struct gpc_kept_mapping *mapping);

/*
 * Takes out the newest of this owner and size which no work uses that is not done.  false: there is
 * none; *waits_p says whether there is one that work still uses.
 */
bool gpc_kept_take(struct gpc_kept *kept, const void *owner, uint64_t size, uint64_t done,
		   struct gpc_heap_range *range_p, bool *waits_p);

uint64_t gpc_kept_bytes(struct gpc_kept *kept, const void *owner);

#endif /* GPC_KEPT_H */
