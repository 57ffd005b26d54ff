/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: memory that is allocated in pieces and freed as a whole. A zeroed struct is an empty pool.
 *
 * Ownership: gs_pool_fini() frees everything that was allocated.
 * Threads: one thread at a time.
 * Errors: functions that return a pointer return NULL if out of memory; the pool remains valid.
 */
#ifndef GS_POOL_H
#define GS_POOL_H

#include <stddef.h>

struct gs_pool_chunk;

struct gs_pool {
	struct gs_pool_chunk *chunks;
};

/* Returns `size` zeroed bytes. */
void *gs_pool_alloc(struct gs_pool *pool, size_t size);
/* Returns an array for at least count + 1 elements of `element` bytes: `array` itself while count
 * is below *capacity, otherwise a copy of twice the capacity, which is stored in *capacity. The old
 * array stays allocated. */
void *gs_pool_grow(struct gs_pool *pool, void *array, size_t element, size_t count,
		   size_t *capacity);
/* Returns a NUL-terminated copy of `len` bytes. */
char *gs_pool_strndup(struct gs_pool *pool, const char *text, size_t len);
void gs_pool_fini(struct gs_pool *pool);

#endif
