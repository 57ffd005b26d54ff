/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded module: parsed text, decoded functions, and its variables in device memory.
 *
 * Ownership: a module owns everything that it points to; gs_module_unload() (engine.h) frees it.
 * Threads: only loading and unloading modify a module; any thread may read it.
 */
#ifndef GS_MODULE_H
#define GS_MODULE_H

#include "softgpu/engine/lanes/code.h"

struct gs_module {
	struct gs_ptx *ptx;
	struct gs_pool pool;
	uint64_t *symbol_addresses;    /* by symbol. .global and .const: device address. .shared:
					  offset in the shared window */
	void *variables;               /* a single block of device memory for all variables */
	struct gs_function *functions; /* in the order of ptx->functions */
	const struct gs_function **entries; /* the functions that are kernels */
	uint32_t entry_count;
	int32_t *globals; /* indices of the symbols that the driver may query */
	uint32_t global_count;
	uint32_t const_bytes;     /* size of all .const variables */
	struct gs_param **params; /* per function: its parameters; NULL: none */
};

/* module_shared.c: assigns offsets to .shared variables and shared memory sizes to functions.
 * Returns GS_OK, GS_OUT_OF_MEMORY or GS_INVALID_PTX; the module must be unloaded after an error. */
int gs_module_place_shared(struct gs_module *module, struct gs_error *error);

#endif
