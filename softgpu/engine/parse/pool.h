/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena of zeroed memory that is freed as a whole.
 *
 * Threads: one thread at a time.
 * Errors: NULL: out of memory; the pool remains valid for gs_pool_fini().
 */
#ifndef GS_POOL_H
#define GS_POOL_H

#include <stddef.h>

struct gs_pool_chunk;

struct gs_pool {
	struct gs_pool_chunk *chunks;
};

void *gs_pool_alloc(struct gs_pool *pool, size_t size);
/* Returns an array for count + 1 elements: the old one or a larger copy. */
void *gs_pool_grow(struct gs_pool *pool, void *array, size_t element, size_t count,
		   size_t *capacity);
char *gs_pool_strndup(struct gs_pool *pool, const char *text, size_t len);
void gs_pool_fini(struct gs_pool *pool);

#endif
