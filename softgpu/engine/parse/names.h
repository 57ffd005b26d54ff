/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from names to numbers. Names are borrowed; entries live in the pool given at each
 * insertion. Setting a name again replaces its number.
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

/* The number, or -1. */
int32_t gs_names_find(const struct gs_names *names, const char *text, size_t len);
/* 0, or -1 when memory runs out. */
int gs_names_set(struct gs_names *names, struct gs_pool *pool, const char *text, size_t len,
		 int32_t value);

#endif
