/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the exported CUDA symbols and the functions that they jump to.
 *
 * The exported symbol cuFoo is a few instructions that jump through its slot in gpc_entry[]: to
 * gpc_cuFoo(), to gpc_unsupported() or, in pass-through mode (passthrough.h), to the machine's own
 * driver.
 *
 * Ownership: all tables and strings are static; they live as long as the process.
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
	/* this library's function, or one that calls gpc_unsupported() */
	void *ours;
	void *traced; /* variant of `ours` that also records each call in the timeline
			 (client/base/trace.h) */
	bool supported;
	/* For an unsupported symbol: its first call is reported to the user. */
	bool reported;
	/* Suggested alternative for an unsupported symbol; NULL: none. */
	const char *instead;
};

/* Generated table of the exported symbols, in the order of codegen/api/symbols.h: gpc_entry_count
 * elements. */
extern const struct gpc_entry_info gpc_entries[];
/* Number of elements of gpc_entries[] and of gpc_entry[]. */
extern const size_t gpc_entry_count;
/* The function that each symbol jumps to, in the order of gpc_entries[]. */
extern void *gpc_entry[];

/* Implementation of exported symbols that have no function. Always returns
 * CUDA_ERROR_NOT_SUPPORTED. entry: the symbol's index in gpc_entries[]. The first call of each
 * symbol prints a message on standard error if the entry's `reported` is set. */
CUresult gpc_unsupported(size_t entry);

/* Reports that profilers cannot be used, if NVIDIA's tools (CUPTI, Nsight, compute-sanitizer) are
 * known to use this driver table. Called when cuGetExportTable() is queried for a table that this
 * library does not provide. Prints at most one message per process on standard error, and none if
 * GPUPOOL_LOG contains quiet. */
void gpc_unsupported_table(const CUuuid *table);

/* Reports that profilers cannot be used, like gpc_unsupported_table(), if CUDA_INJECTION64_PATH is
 * set: it names a tool's library, which NVIDIA's driver would load. Called by cuInit(). */
void gpc_unsupported_injection(void);

/* Implementation, in pass-through mode, of symbols that the machine's own driver lacks. Always
 * returns CUDA_ERROR_NOT_SUPPORTED, without a message. */
CUresult gpc_passthrough_not_supported(void);

#endif /* GPC_ENTRY_H */
