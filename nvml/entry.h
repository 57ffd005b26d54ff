/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported symbols of libnvidia-ml.so.1, generated from codegen/nvml/symbols.txt. Each jumps
 * through its entry in gpn_entry[]: to the function of this library, or to gpn_not_supported(). If
 * no daemon is configured and the machine has an NVML library of its own, all jump to that library;
 * functions that it lacks return GPN_FUNCTION_NOT_FOUND.
 *
 * Ownership: all tables are static.
 * Threads: gpn_entry[] is filled by a constructor when the library is loaded, and constant
 * afterwards.
 */
#ifndef GPN_ENTRY_H
#define GPN_ENTRY_H

#include <stddef.h>

/* An exported symbol. */
struct gpn_entry_info {
	const char *name;
	void *ours; /* the function of this library; NULL: not supported */
};

/* Exported names and their implementations, gpn_entry_count elements; generated. */
extern const struct gpn_entry_info gpn_entries[];
extern const size_t gpn_entry_count;
/* Target address of each exported symbol, in the order of gpn_entries[]. */
extern void *gpn_entry[];

/* ID by which this library recognizes another copy of itself, so as not to use it as the machine's
 * own library: nvmlInternalGetExportTable returns an export table for this ID only in a copy of
 * this library. */
extern const unsigned char gpn_table_id[16];

/* Implements all unsupported functions; arguments are ignored. Returns GPN_NOT_SUPPORTED, or
 * GPN_UNINITIALIZED before nvmlInit. */
int gpn_not_supported(void);

#endif /* GPN_ENTRY_H */
