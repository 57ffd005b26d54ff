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
	void *traced; /* the same with a line in the timeline (client/base/trace.h) */
	bool supported;
	/* Of one that is not: whether the user is told, and what the program may do instead or
	 * NULL. */
	bool reported;
	const char *instead;
};

/* Generated; the order is that of codegen/api/symbols.h. */
extern const struct gpc_entry_info gpc_entries[];
extern const size_t gpc_entry_count;
extern void *gpc_entry[];

/* What an exported symbol without a function does, whatever its arguments: says so on stderr, the
 * first time, and returns CUDA_ERROR_NOT_SUPPORTED.  entry: its place.  Any thread. */
CUresult gpc_unsupported(size_t entry);

/* A table of the driver's that is not served was asked for: if a tool of NVIDIA's asks, that is
 * said on stderr, once.  Any thread. */
void gpc_unsupported_table(const CUuuid *table);

/* The same, if the environment names a tool's library that NVIDIA's driver would load. */
void gpc_unsupported_injection(void);

/* In pass-through, what the machine's own driver lacks: CUDA_ERROR_NOT_SUPPORTED, and not a word.
 */
CUresult gpc_passthrough_not_supported(void);

#endif /* GPC_ENTRY_H */
