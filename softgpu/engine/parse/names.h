/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map from names to numbers. Setting a name again replaces its number. A zeroed struct is an
 * empty map.
 *
 * Ownership: names are borrowed and must outlive the map. Entries are allocated in the pool passed
 * at each insertion, so the map itself needs no cleanup.
 * Threads: one thread at a time.
 */
#ifndef GS_NAMES_H
#define GS_NAMES_H

#include "softgpu/engine/parse/pool.h"

#include <stdint.h>

struct gs_name_entry;

struct gs_names {
	struct gs_name_entry **buckets;
	uint32_t bucket_count;
	uint32_t count;
};

/* Returns the number of the name (`len` bytes, any values), or -1 if it is not in the map. */
int32_t gs_names_find(const struct gs_names *names, const char *text, size_t len);
/* Sets the number of a name. Returns 0, or -1 if out of memory; the map is then unchanged. */
int gs_names_set(struct gs_names *names, struct gs_pool *pool, const char *text, size_t len,
		 int32_t value);

#endif
