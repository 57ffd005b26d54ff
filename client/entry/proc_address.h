/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol lookup for both versions of cuGetProcAddress(): maps a name and a CUDA version to a
 * function.
 *
 * Ownership: the generated tables are static; returned functions and entries live as long as the
 * process.
 * Threads: any; the tables are constant.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE for invalid flags or a NULL name or function_p, or
 * the errors stated with the function. After CUDA_ERROR_INVALID_VALUE all outputs are unchanged.
 * Source: the table is generated from codegen/api/symbols.h.
 */
#ifndef GPC_PROC_ADDRESS_H
#define GPC_PROC_ADDRESS_H

#include <cuda.h>
#include <stddef.h>

/* One version of a function. */
struct gpc_proc_entry {
	const char *base;         /* name to look up, without a suffix such as _v2 or _ptsz */
	unsigned char per_thread; /* 0: legacy default stream; 1: the _ptds and _ptsz variants */
	int version;              /* first driver version that has the function */
	int symbol;               /* index in gpc_entry_address[] */
};

/* Generated. Sorted by base (strcmp), then per_thread, then version. */
extern const struct gpc_proc_entry gpc_proc_table[];
/* Number of elements of gpc_proc_table[]. */
extern const size_t gpc_proc_count;
extern const void *const gpc_entry_address[]; /* addresses of the exported symbols, generated, by
						 gpc_proc_entry.symbol */

/*
 * Finds the newest function of this name in a table like gpc_proc_table[], of `count` elements. It
 * must not be newer than `version` or `driver_version`. version: the program's CUDA version,
 * compared as unsigned, so that -1 means the newest; driver_version: newer functions are treated as
 * absent; flags: of enum CUdriverProcAddress_flags. Returns CUDA_SUCCESS, also if no function fits;
 * *entry_p is then NULL, and *status_p is the reason. Returns CUDA_ERROR_INVALID_VALUE, with both
 * outputs unchanged, for invalid flags; the pointers must not be NULL.
 */
CUresult gpc_proc_lookup(const struct gpc_proc_entry *table, size_t count, const char *base,
			 int version, cuuint64_t flags, int driver_version,
			 const struct gpc_proc_entry **entry_p,
			 CUdriverProcAddressQueryResult *status_p);

/* Implements cuGetProcAddress() of CUDA 11.3, by gpc_proc_lookup() in gpc_proc_table[]. Returns
 * CUDA_ERROR_NOT_FOUND, with *function_p unchanged, if no function fits. */
CUresult gpc_proc_address_v1(const char *base, void **function_p, int version, cuuint64_t flags,
			     int driver_version);

/* Implements cuGetProcAddress_v2() of CUDA 12.0, by gpc_proc_lookup() in gpc_proc_table[]. Returns
 * CUDA_SUCCESS, with *function_p set to NULL and *status_p to the reason, if no function fits.
 * status_p may be NULL. */
CUresult gpc_proc_address_v2(const char *base, void **function_p, int version, cuuint64_t flags,
			     int driver_version, CUdriverProcAddressQueryResult *status_p);

#endif /* GPC_PROC_ADDRESS_H */
