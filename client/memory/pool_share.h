/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of one process in another (cuMemPoolExportToShareableHandle and the like).  A pool
 * has a name that the daemon knows, and each of its mappings that was exported from another one; a
 * pointer is the mapping's, with its place in it.  Who imports maps the whole mapping, once for all
 * pointers into it, until the last of them is freed.  Any thread.
 *
 * So programs of several processes hand each other what they allocate in stream order, and only the
 * first pointer of 64 MiB takes a round trip at each end.
 */
#ifndef GPC_POOL_SHARE_H
#define GPC_POOL_SHARE_H

#include "protocol/ipc_handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_device;
struct gpc_ipc_share;

/* What names a pool, or a block of one that begins at the address, in other processes.
 * CUDA_ERROR_INVALID_VALUE: it is none, or was not made for that, or the block's pool has not been
 * exported yet. */
CUresult gpc_pool_export(CUmemoryPool handle, struct gp_ipc_handle *bytes);
CUresult gpc_pool_export_block(uint64_t address, struct gp_ipc_handle *bytes);

/* Another process's, or this one's once more.  What the daemon refuses is its error. */
CUresult gpc_pool_import(struct gpc_device *device, const struct gp_ipc_handle *bytes,
			 CUmemoryPool *handle_p);
CUresult gpc_pool_import_block(CUmemoryPool handle, const struct gp_ipc_handle *bytes,
			       uint64_t *address_p);

/* Whether any has been shared or imported: without a lock. */
bool gpc_pool_any_shared(void);
/* Whether address is in an imported block, and which. */
bool gpc_pool_find_imported(uint64_t address, struct gpc_address *found);
/* However often it was imported.  CUDA_ERROR_INVALID_VALUE: no imported block begins there. */
CUresult gpc_pool_free_imported(uint64_t address);

/* For pool.c: nobody opens it by this any more.  NULL: there is nothing to withdraw. */
void gpc_pool_unshare(struct gpc_ipc_share *share);

#endif /* GPC_POOL_SHARE_H */
