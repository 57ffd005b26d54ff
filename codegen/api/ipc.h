/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: memory and events of one process in another (docs/ipc.md).  A handle is a struct
 * gp_ipc_handle (protocol/ipc_handle.h), which the daemon makes.
 */

/* The allocation that dptr is in; also of the part of a larger mapping. */
GP_LOCAL(VIA(gpMemoryShare))
CUresult cuIpcGetMemHandle(
        OUT CUipcMemHandle *pHandle,
        CUdeviceptr dptr);

GP_LOCAL(VIA(gpMemoryOpen), ALIAS(cuIpcOpenMemHandle))
CUresult cuIpcOpenMemHandle_v2(
        OUT CUdeviceptr *pdptr,
        CUipcMemHandle handle,
        unsigned int Flags);

GP_LOCAL(VIA(gpMemoryUnmap), SYNCHRONIZES(dptr))
CUresult cuIpcCloseMemHandle(
        CUdeviceptr dptr);

GP_LOCAL(VIA(gpEventShare))
CUresult cuIpcGetEventHandle(
        OUT CUipcEventHandle *pHandle,
        CUevent event);

GP_LOCAL(VIA(gpEventOpen))
CUresult cuIpcOpenEventHandle(
        OUT CUevent *phEvent,
        CUipcEventHandle handle);

/* size bytes that gpMemoryMap and its like have mapped, all in one mapping, may be opened by others. */
GP_MESSAGE(0x0211, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryShare(
        NEW gp_share share,
        gp_address address,
        size_t size,
        OUT_BYTES(64) void *handle);

/* The handle opens nothing any more.  Who has opened it keeps the memory. */
GP_MESSAGE(0x0212, POST, SERVER_HOOK)
void gpUnshare(
        DROP gp_share share);

/* Maps what another session of the tenant shares; size is that of the whole mapping which the memory
 * is in. gpMemoryUnmap undoes it.  The session that shares it goes on to pay for it. */
GP_MESSAGE(0x0213, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryOpen(
        gp_address address,
        size_t size,
        int device,
        IN_BYTES(64) const void *handle);

/* The same, of physical memory, which the session may open itself, too. */
GP_MESSAGE(0x0214, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPhysicalShare(
        NEW gp_share share,
        gp_memory memory,
        OUT_BYTES(64) void *handle);

GP_MESSAGE(0x0215, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPhysicalOpen(
        NEW gp_memory memory,
        size_t size,
        int device,
        IN_BYTES(64) const void *handle);

/* A memory pool of the client's, on the device: a name for it, to share its memory by. */
GP_MESSAGE(0x0216, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolShare(
        NEW gp_share share,
        int device,
        OUT_BYTES(64) void *handle);

/* Whether another session of the tenant, or this one, shares such a pool. */
GP_MESSAGE(0x0217, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolOpen(
        int device,
        IN_BYTES(64) const void *handle);

/* As gpMemoryShare, of memory of a pool that is shared. */
GP_MESSAGE(0x0218, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolMemoryShare(
        NEW gp_share share,
        gp_share pool,
        gp_address address,
        size_t size,
        OUT_BYTES(64) void *handle);

/* As gpMemoryOpen; the pool's handle says of which pool it must be.  It may be the session's own. */
GP_MESSAGE(0x0219, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolMemoryOpen(
        gp_address address,
        size_t size,
        int device,
        IN_BYTES(64) const void *pool,
        IN_BYTES(64) const void *handle);

/* Of an event made with CU_EVENT_INTERPROCESS. */
GP_MESSAGE(0x0417, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpEventShare(
        CUevent event,
        OUT_BYTES(64) void *handle);

/* A name for an event of another session of the tenant. */
GP_MESSAGE(0x0418, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpEventOpen(
        NEW CUevent event,
        IN_BYTES(64) const void *handle);

/* cuEventRecordWithFlags, answered when the driver has been told: from then on all other sessions see
 * that the event was recorded. */
GP_MESSAGE(0x0419, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpEventRecord(
        CUevent event,
        CUstream stream,
        unsigned int flags);
