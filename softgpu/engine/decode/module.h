/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded module: parsed text, decoded functions, its variables in device memory.
 * Only the driver's load and unload change it.
 */
#ifndef GS_MODULE_H
#define GS_MODULE_H

#include "softgpu/engine/lanes/code.h"

struct gs_module {
	struct gs_ptx *ptx;
	struct gs_pool pool;
	uint64_t *
		symbol_addresses; /* of .global and .const: device addresses; of .shared: offsets */
	void *variables;          /* one block of device memory for all of them */
	struct gs_function *functions; /* as in ptx */
	const struct gs_function **entries;
	uint32_t entry_count;
	int32_t *globals; /* symbols the driver may ask for */
	uint32_t global_count;
	uint32_t const_bytes;
	struct gs_param **params; /* per function */
};

/* module_shared.c: gives .shared variables their offsets and functions their sizes. */
int gs_module_place_shared(struct gs_module *module, struct gs_error *error);

#endif
