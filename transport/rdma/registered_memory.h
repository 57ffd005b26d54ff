/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that its owner has promised to keep in place (gp_memory_register()), for backends that
 * move bulk from memory to memory.  A lookup holds the lock of all of it until gp_memory_release().
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
	struct gp_memory_keys *keys; /* the backend's; NULL: none yet */
	bool is_device;              /* of gp_conn_register_range(): it has the keys that it gets */
};

/* gp_conn_register_range(): keeps a range with its keys.  false: it overlaps another, or there is
 * no memory.
 */
bool gp_memory_register_device(void *base, size_t size, struct gp_memory_keys *keys);

/* The range in which all of [base, base + size) lies; NULL: none, and nothing is locked. */
struct gp_memory *gp_memory_acquire(const void *base, size_t size);
void gp_memory_release(void);

/* Of the backend. */
void gp_memory_destroy_keys(struct gp_memory_keys *keys);

#endif /* GP_MEMORY_H */
