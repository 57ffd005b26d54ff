/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded module: parsed text, decoded functions, and its variables in device memory.
 *
 * Threads: only loading and unloading modify it; any thread may read it.
 */
#ifndef GS_MODULE_H
#define GS_MODULE_H

#include "softgpu/engine/lanes/code.h"

struct gs_module {
	struct gs_ptx *ptx;
	struct gs_pool pool;
	uint64_t *symbol_addresses;    /* .global and .const: device addresses; .shared: offsets */
	void *variables;               /* a single block of device memory for all variables */
	struct gs_function *functions; /* in the order of ptx */
	const struct gs_function **entries;
	uint32_t entry_count;
	int32_t *globals; /* symbols that the driver may query */
	uint32_t global_count;
	uint32_t const_bytes;
	struct gs_param **params; /* per function */
};

/* module_shared.c: assigns offsets to .shared variables and sizes to functions. */
int gs_module_place_shared(struct gs_module *module, struct gs_error *error);

#endif
