/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the exported CUDA symbols and the functions that they jump to, and the implementation of
 * unsupported symbols.
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
			 (client/base/trace.h), for GPUPOOL_TRACE */
	/* this library implements the symbol */
	bool supported;
	/* for an unsupported symbol: its first call is reported to the user */
	bool reported;
	/* alternative to an unsupported symbol, for the report; NULL: none */
	const char *instead;
};

/* Generated table of the exported symbols, in the order of codegen/api/symbols.h: gpc_entry_count
 * elements. */
extern const struct gpc_entry_info gpc_entries[];
/* Number of elements of gpc_entries[] and of gpc_entry[]. */
extern const size_t gpc_entry_count;
/* The function that each symbol jumps to, in the order of gpc_entries[]; passthrough.h fills it. */
extern void *gpc_entry[];

/* Implementation of unsupported symbols. Always returns CUDA_ERROR_NOT_SUPPORTED. entry: the
 * symbol's index in gpc_entries[]. If the entry's `reported` is set, its first call is reported by
 * gpc_not_supported_report() (client/base/unsupported_feature.h). */
CUresult gpc_unsupported(size_t entry);

/* Called when the program queries cuGetExportTable() for a table that this library does not
 * provide. If NVIDIA's tools (CUPTI, Nsight, compute-sanitizer) are known to use this table,
 * reports by gpc_log_always() (client/base/log.h) that they cannot be used: once per process, and
 * not if GPUPOOL_LOG contains quiet. */
void gpc_unsupported_table(const CUuuid *table);

/* Called by cuInit(): reports like gpc_unsupported_table() if CUDA_INJECTION64_PATH is set, which
 * names a tool's library that NVIDIA's driver would load. */
void gpc_unsupported_injection(void);

/* Implementation, in pass-through mode, of symbols that the machine's own driver lacks. Always
 * returns CUDA_ERROR_NOT_SUPPORTED, without a message. */
CUresult gpc_passthrough_not_supported(void);

#endif /* GPC_ENTRY_H */
