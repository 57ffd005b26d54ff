/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: memory and events that are shared between processes (docs/ipc.md). An IPC handle
 * is a struct gp_ipc_handle (protocol/ipc_handle.h), which the daemon creates.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

/* Exports the allocation that contains dptr, also if it is a part of a larger mapping. */
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

/* Exports size bytes of memory of gpMemoryMap and similar calls. The range must be in one
 * mapping. */
GP_MESSAGE(0x0211, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryShare(
        NEW gp_share share,
        gp_address address,
        size_t size,
        OUT_BYTES(64) void *handle);

/* Invalidates the handle. Sessions that have opened it keep the memory. */
GP_MESSAGE(0x0212, POST, SERVER_HOOK)
void gpUnshare(
        DROP gp_share share);

/* Maps memory that another session of the tenant exports. size: size of the whole mapping that
 * contains the memory. gpMemoryUnmap unmaps it. The exporting session is still charged for the
 * memory. */
GP_MESSAGE(0x0213, WAIT, SERVER_HOOK, CHARGES_NOTHING, OWN_RESULT)
void gpMemoryOpen(
        gp_address address,
        size_t size,
        int device,
        IN_BYTES(64) const void *handle);

/* gpMemoryShare for physical memory, which the exporting session may open, too. */
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

/* Exports a memory pool of the client on the device: a handle by which its memory is exported. */
GP_MESSAGE(0x0216, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolShare(
        NEW gp_share share,
        int device,
        OUT_BYTES(64) void *handle);

/* Checks that a session of the tenant, which may be this one, exports the pool. */
GP_MESSAGE(0x0217, WAIT, SERVER_HOOK, CHARGES_NOTHING, OWN_RESULT)
void gpPoolOpen(
        int device,
        IN_BYTES(64) const void *handle);

/* gpMemoryShare for memory of an exported pool. */
GP_MESSAGE(0x0218, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpPoolMemoryShare(
        NEW gp_share share,
        gp_share pool,
        gp_address address,
        size_t size,
        OUT_BYTES(64) void *handle);

/* gpMemoryOpen for memory of the pool with this handle. The pool may belong to this session. */
GP_MESSAGE(0x0219, WAIT, SERVER_HOOK, CHARGES_NOTHING, OWN_RESULT)
void gpPoolMemoryOpen(
        gp_address address,
        size_t size,
        int device,
        IN_BYTES(64) const void *pool,
        IN_BYTES(64) const void *handle);

/* Exports an event with CU_EVENT_INTERPROCESS. */
GP_MESSAGE(0x0417, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpEventShare(
        CUevent event,
        OUT_BYTES(64) void *handle);

/* Opens an event of another session of the tenant. */
GP_MESSAGE(0x0418, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpEventOpen(
        NEW CUevent event,
        IN_BYTES(64) const void *handle);

/* cuEventRecordWithFlags with a reply after the driver has recorded the event: all other sessions
 * then see the record. */
GP_MESSAGE(0x0419, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpEventRecord(
        CUevent event,
        CUstream stream,
        unsigned int flags);
