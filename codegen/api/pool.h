/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: memory pools. They are objects of the client; the account is charged by
 * gpMemoryMap and gpHostMap, which map their memory. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpMemoryMap), CAPTURE(node), QUICK)
CUresult cuMemAllocAsync(
        OUT CUdeviceptr *dptr,
        size_t bytesize,
        CUstream hStream);

GP_LOCAL(VIA(gpMemoryMap, gpHostReserve, gpHostMap), CAPTURE(node))
CUresult cuMemAllocFromPoolAsync(
        OUT CUdeviceptr *dptr,
        size_t bytesize,
        CUmemoryPool pool,
        CUstream hStream);

GP_LOCAL(VIA(gpMemoryUnmap, gpHostUnmap), CAPTURE(node), QUICK)
CUresult cuMemFreeAsync(
        CUdeviceptr dptr,
        CUstream hStream);

GP_LOCAL()
CUresult cuMemPoolCreate(
        OUT CUmemoryPool *pool,
        IN const CUmemPoolProps *poolProps);

GP_LOCAL(VIA(gpMemoryUnmap, gpHostUnmap))
CUresult cuMemPoolDestroy(
        CUmemoryPool pool);

GP_LOCAL(VIA(gpMemoryUnmap, gpHostUnmap))
CUresult cuMemPoolTrimTo(
        CUmemoryPool pool,
        size_t minBytesToKeep);

GP_LOCAL()
CUresult cuMemPoolSetAttribute(
        CUmemoryPool pool,
        CUmemPool_attribute attr,
        BY_HOOK void *value);

GP_LOCAL()
CUresult cuMemPoolGetAttribute(
        CUmemoryPool pool,
        CUmemPool_attribute attr,
        BY_HOOK void *value);

GP_LOCAL(VIA(gpPeerAccess))
CUresult cuMemPoolSetAccess(
        CUmemoryPool pool,
        IN_N(count) const CUmemAccessDesc *map,
        size_t count);

GP_LOCAL()
CUresult cuMemPoolGetAccess(
        OUT CUmemAccess_flags *flags,
        CUmemoryPool memPool,
        IN CUmemLocation *location);

GP_LOCAL()
CUresult cuDeviceGetDefaultMemPool(
        OUT CUmemoryPool *pool_out,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetMemPool(
        OUT CUmemoryPool *pool,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceSetMemPool(
        CUdevice dev,
        CUmemoryPool pool);

GP_LOCAL()
CUresult cuMemGetDefaultMemPool(
        OUT CUmemoryPool *pool_out,
        IN CUmemLocation *location,
        CUmemAllocationType type);

GP_LOCAL()
CUresult cuMemGetMemPool(
        OUT CUmemoryPool *pool,
        IN CUmemLocation *location,
        CUmemAllocationType type);

GP_LOCAL()
CUresult cuMemSetMemPool(
        IN CUmemLocation *location,
        CUmemAllocationType type,
        CUmemoryPool pool);

/* The client creates the file descriptor, which contains a handle. The data of an exported pointer
 * is also created by the client. */
GP_LOCAL(VIA(gpPoolShare))
CUresult cuMemPoolExportToShareableHandle(
        BY_HOOK void *handle_out,
        CUmemoryPool pool,
        CUmemAllocationHandleType handleType,
        unsigned long long flags);

GP_LOCAL(VIA(gpPoolOpen))
CUresult cuMemPoolImportFromShareableHandle(
        OUT CUmemoryPool *pool_out,
        BY_HOOK void *handle,
        CUmemAllocationHandleType handleType,
        unsigned long long flags);

GP_LOCAL(VIA(gpPoolMemoryShare))
CUresult cuMemPoolExportPointer(
        OUT CUmemPoolPtrExportData *shareData_out,
        CUdeviceptr ptr);

GP_LOCAL(VIA(gpPoolMemoryOpen))
CUresult cuMemPoolImportPointer(
        OUT CUdeviceptr *ptr_out,
        CUmemoryPool pool,
        IN CUmemPoolPtrExportData *shareData);
