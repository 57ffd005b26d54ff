/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported symbols.  cuFoo is a few instructions that jump through its place in gpc_entry[]:
 * to gpc_cuFoo(), to gpc_unsupported(), or, in pass-through, to the machine's own driver.
 * gpc_entry[] is filled before the first call and not changed afterwards.
 */
#ifndef GPC_ENTRY_H
#define GPC_ENTRY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_entry_info {
	const char *name; /* as exported */
	void *ours;
	bool supported;
};

/* Generated; the order is that of codegen/api/symbols.h. */
extern const struct gpc_entry_info gpc_entries[];
extern const size_t gpc_entry_count;
extern void *gpc_entry[];

/* CUDA_ERROR_NOT_SUPPORTED, whatever the arguments. */
CUresult gpc_unsupported(void);

#endif /* GPC_ENTRY_H */
