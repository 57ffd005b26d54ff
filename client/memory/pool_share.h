/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of one process in another (cuMemPoolExportToShareableHandle and the like).  A pool
 * has a name that the daemon knows, and each of its mappings that was exported from another one; a
 * pointer is the mapping's, with its place in it.  Who imports maps the whole mapping, once for all
 * pointers into it, until the last of them is freed.  Any thread.
 *
 * A pool of host memory is a file in memory of this machine, all of whose mappings are parts of it.
 * Its descriptor is that file, and a pointer has the offset of its mapping there: no daemon is
 * asked.  Each process replicates what it has mapped to its own session.
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
struct gpc_context;
struct gpc_device;
struct gpc_ipc_export;

/* What names a pool, or a block of one that begins at the address, in other processes.
 * CUDA_ERROR_INVALID_VALUE: it is none, or was not made for that, or the block's pool has not been
 * exported yet. */
CUresult gpc_pool_export(CUmemoryPool handle, struct gp_ipc_handle *bytes);
CUresult gpc_pool_export_block(uint64_t address, struct gp_ipc_handle *bytes);

/* The file of a new pool of host memory for other processes; -1: there is no memory for it, or the
 * daemon has no host memory that kernels reach. */
int gpc_pool_create_file(struct gpc_device *device);
/* A descriptor of that file, the caller's.  CUDA_ERROR_NOT_SUPPORTED: it is a pool of device
 * memory. */
CUresult gpc_pool_export_file(CUmemoryPool handle, int *fd_p);
/* The descriptor stays the caller's.  CUDA_ERROR_INVALID_VALUE: it is not such a file;
 * CUDA_ERROR_NOT_SUPPORTED: it is this process's. */
CUresult gpc_pool_import_file(int fd, CUmemoryPool *handle_p);

/* Another process's, or this one's once more.  What the daemon refuses is its error. */
CUresult gpc_pool_import(struct gpc_device *device, const struct gp_ipc_handle *bytes,
			 CUmemoryPool *handle_p);
CUresult gpc_pool_import_block(CUmemoryPool handle, const struct gp_ipc_handle *bytes,
			       uint64_t *address_p);

/* Whether any has been shared or imported: without a lock. */
bool gpc_pool_any_shared(void);
/* Whether address is in an imported block, and which. */
bool gpc_pool_find_imported(uint64_t address, struct gpc_address *found);
/* However often it was imported; in the order of a stream, or of none (NULL, 0).
 * CUDA_ERROR_INVALID_VALUE: no imported block begins there. */
CUresult gpc_pool_free_imported(uint64_t address, const struct gpc_context *context,
				uint64_t stream);
/* Unmaps imported host memory without blocks, of which the work is done. */
void gpc_pool_close_unused(void);

/* For pool.c: nobody opens it by this any more.  NULL: there is nothing to withdraw. */
void gpc_pool_export_withdraw(struct gpc_ipc_export *share);

#endif /* GPC_POOL_SHARE_H */
