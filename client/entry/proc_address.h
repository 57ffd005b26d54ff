/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function a name and a version stand for: cuGetProcAddress, both of its versions.
 * The table is generated from codegen/api/symbols.h and constant, so any thread may ask at any
 * time. Returns are those of the CUDA functions.
 */
#ifndef GPC_PROC_ADDRESS_H
#define GPC_PROC_ADDRESS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_proc_entry {
	const char *base;         /* as asked for: no _v2, no _ptsz */
	unsigned char per_thread; /* one of the _ptds and _ptsz functions */
	int version;              /* of the driver that had it first */
	int symbol;               /* index into gpc_entry_address */
};

/* Generated. Sorted by base (strcmp), then per_thread, then version. */
extern const struct gpc_proc_entry gpc_proc_table[];
extern const size_t gpc_proc_count;
extern const void *const gpc_entry_address[]; /* of the exported symbols */

/*
 * Writes both outputs unless the flags are invalid; *entry_p is NULL when *status_p says why
 * nothing fits. Entries newer than driver_version do not exist. version is compared as unsigned: -1
 * asks for the newest.
 */
CUresult gpc_proc_lookup(const struct gpc_proc_entry *table, size_t count, const char *base,
			 int version, cuuint64_t flags, int driver_version,
			 const struct gpc_proc_entry **entry_p,
			 CUdriverProcAddressQueryResult *status_p);

/* As in CUDA 11.3: CUDA_ERROR_NOT_FOUND and *function_p untouched when nothing fits. */
CUresult gpc_proc_address_v1(const char *base, void **function_p, int version, cuuint64_t flags,
			     int driver_version);

/* As from CUDA 12.0: success also when nothing fits; *status_p tells, and may be absent. */
CUresult gpc_proc_address_v2(const char *base, void **function_p, int version, cuuint64_t flags,
			     int driver_version, CUdriverProcAddressQueryResult *status_p);

#endif /* GPC_PROC_ADDRESS_H */
