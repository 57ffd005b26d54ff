/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing of memory pools between processes (cuMemPoolExportToShareableHandle and the like).
 *
 * The daemon assigns a handle to an exported pool of device memory, and another handle to each of
 * its mappings from which a pointer was exported. An exported pointer consists of the mapping's
 * handle and an offset. The importer maps the whole mapping, once for all pointers into it, until
 * the last of them is freed. So processes can exchange stream-ordered allocations, and only the
 * first pointer into each mapping of 64 MiB takes a round trip on both sides.
 *
 * A pool of host memory is a memory file of this machine that contains all its mappings. Its
 * shareable handle is the descriptor of that file, and a pointer contains the file offset of its
 * mapping: the daemon is not involved. Each process replicates its mappings to its own session.
 *
 * Ownership: an imported pool is destroyed like any pool (pool.h).
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); called without the pools' lock. Exports and
 * imports wait for the daemon, and for each other.
 * Errors: functions that return CUresult return CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, the errors
 * named at them, or an error of the daemon or the session. Out parameters are undefined after an
 * error.
 */
#ifndef GPC_IPC_POOL_H
#define GPC_IPC_POOL_H

#include "protocol/ipc_handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;
struct gpc_device;

/* Stores in *ipc_handle the handle of a pool of device memory (the caller has checked that) for
 * other processes. The pool's memory stays exported until the pool is freed. Returns
 * CUDA_ERROR_INVALID_VALUE if the pool is invalid or was not created for sharing. */
CUresult gpc_pool_export(CUmemoryPool handle, struct gp_ipc_handle *ipc_handle);
/* Stores in *ipc_handle the handle, for other processes, of the block that starts at the address.
 * The first export of a mapping also waits, without limit, for all posted work. Returns
 * CUDA_ERROR_INVALID_VALUE if there is no such block, or its pool was not created for sharing or
 * has not been exported yet; CUDA_ERROR_OPERATING_SYSTEM if the file of a pool of host memory
 * cannot be examined. */
CUresult gpc_pool_export_block(uint64_t address, struct gp_ipc_handle *ipc_handle);

/* Creates the file of a new exportable pool of host memory; called when such a pool is created.
 * Returns its descriptor, which the caller closes. Returns -1 if memory or descriptors are
 * exhausted, or the daemon cannot make host memory accessible to kernels. */
int gpc_pool_create_file(struct gpc_device *device);
/* Stores in *fd_p a new descriptor of a pool's file, owned by the caller. Returns
 * CUDA_ERROR_INVALID_VALUE if the pool is invalid or was not created for sharing;
 * CUDA_ERROR_NOT_SUPPORTED for a pool of device memory; CUDA_ERROR_OPERATING_SYSTEM if there are no
 * more descriptors. */
CUresult gpc_pool_export_file(CUmemoryPool handle, int *fd_p);
/* Imports a pool of host memory by its file and stores its handle, which the program destroys, in
 * *handle_p; fd remains the caller's. Returns CUDA_ERROR_INVALID_VALUE if it is not such a file;
 * CUDA_ERROR_NOT_SUPPORTED if the file was created by this process, or the daemon cannot make host
 * memory accessible to kernels; CUDA_ERROR_OPERATING_SYSTEM if there are no more descriptors. */
CUresult gpc_pool_import_file(int fd, CUmemoryPool *handle_p);

/* Imports a pool of device memory of another process, or of this process a second time, and stores
 * its handle, which the program destroys, in *handle_p. ipc_handle comes from another process; the
 * daemon checks them. Returns CUDA_ERROR_INVALID_VALUE if they are not the handle of a pool. */
CUresult gpc_pool_import(struct gpc_device *device, const struct gp_ipc_handle *ipc_handle,
			 CUmemoryPool *handle_p);
/* Imports a block of an imported pool and stores its address in *address_p.
 * gpc_pool_free_imported() frees it. ipc_handle comes from another process; sizes and offset are
 * checked here, and the rest by the daemon. Returns CUDA_ERROR_INVALID_VALUE if the pool is not an
 * imported one, or the handle is invalid, or its range overlaps another imported block;
 * CUDA_ERROR_ALREADY_MAPPED if a block of host memory is imported already, whereas one of device
 * memory may be imported again; CUDA_ERROR_NOT_SUPPORTED if kernels cannot access host memory. */
CUresult gpc_pool_import_block(CUmemoryPool handle, const struct gp_ipc_handle *ipc_handle,
			       uint64_t *address_p);

/* Returns whether a pool was ever imported, or its export attempted; without a lock. */
bool gpc_pool_any_shared(void);
/* Returns whether the address is in an imported block. If so, fills in *found; otherwise *found is
 * unchanged. */
bool gpc_pool_find_imported(uint64_t address, struct gpc_address *found);
/* Frees an imported block, regardless of how often it was imported, in the order of the stream with
 * this number (gpc_stream.number, client/stream/stream.h). context NULL and stream 0: in the order
 * of no stream. Does not wait for work. Returns CUDA_ERROR_INVALID_VALUE if no imported block
 * starts at the address. */
CUresult gpc_pool_free_imported(uint64_t address, const struct gpc_context *context,
				uint64_t stream);
/* Unmaps imported host memory that has no blocks and whose work is done. Called after a
 * synchronization. Does not wait for work. */
void gpc_pool_close_unused(void);

#endif /* GPC_IPC_POOL_H */
