/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of memory whose owner guarantees that it stays mapped (gp_memory_register()), for
 * backends that transfer bulk directly between memories.
 *
 * Threads: any. A successful lookup holds the registry's lock until gp_memory_release().
 */
#ifndef GP_MEMORY_H
#define GP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_memory_keys;

struct gp_memory {
	uint8_t *base;
	size_t size;
	struct gp_memory_keys *keys; /* registrations of the backend; NULL: none yet */
	/* From gp_conn_register_range(): has only the keys that it was registered with. */
	bool is_device;
};

/* Adds a range of gp_conn_register_range() and its keys. Returns false if it overlaps another range
 * or memory is exhausted; the keys then remain the caller's. */
bool gp_memory_register_device(void *base, size_t size, struct gp_memory_keys *keys);

/* Returns the range that contains all of [base, base + size), with the registry locked; NULL: there
 * is none, and nothing is locked. */
struct gp_memory *gp_memory_acquire(const void *base, size_t size);
void gp_memory_release(void);

/* Implemented by the backend: frees a range's registrations. */
void gp_memory_destroy_keys(struct gp_memory_keys *keys);

#endif /* GP_MEMORY_H */
