/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the exported CUDA symbols and the functions that they jump to.
 *
 * The exported symbol cuFoo is a few instructions that jump through its slot in gpc_entry[]: to
 * gpc_cuFoo(), to gpc_unsupported() or, in pass-through mode, to the machine's own driver.
 * Ownership: all tables are static; they live as long as the process.
 * Threads: gpc_entry[] is filled while the library is loaded, before the first call, and never
 * changes afterwards. The functions may be called from any thread.
 */
#ifndef GPC_ENTRY_H
#define GPC_ENTRY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* One exported symbol. */
struct gpc_entry_info {
	const char *name; /* exported name */
	void *ours;
	void *traced; /* the same function, which also records each call in the timeline
			 (client/base/trace.h) */
	bool supported;
	/* For an unsupported symbol: whether its use is reported to the user, and the suggested
	 * alternative (NULL: none). */
	bool reported;
	const char *instead;
};

/* Generated; in the order of codegen/api/symbols.h. */
extern const struct gpc_entry_info gpc_entries[];
extern const size_t gpc_entry_count;
extern void *gpc_entry[];

/* Returns CUDA_ERROR_NOT_SUPPORTED: the implementation of exported symbols that have no function.
 * entry is the symbol's index in gpc_entries[]. The first call of each symbol writes a message to
 * stderr if the entry's `reported` is set. */
CUresult gpc_unsupported(size_t entry);

/* Called when cuGetExportTable is queried for a driver table that this library does not provide. If
 * the table is known to be used by one of NVIDIA's tools (CUPTI, Nsight, compute-sanitizer), writes
 * one message to stderr per process. */
void gpc_unsupported_table(const CUuuid *table);

/* Writes the same message if CUDA_INJECTION64_PATH names a tool's library, which NVIDIA's driver
 * would load. */
void gpc_unsupported_injection(void);

/* Returns CUDA_ERROR_NOT_SUPPORTED without a message: in pass-through mode, the implementation of
 * symbols that the machine's own driver lacks. */
CUresult gpc_passthrough_not_supported(void);

#endif /* GPC_ENTRY_H */
