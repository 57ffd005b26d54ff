/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: virtual memory management. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpAddressReserve))
CUresult cuMemAddressReserve(
        OUT CUdeviceptr *ptr,
        size_t size,
        size_t alignment,
        CUdeviceptr addr,
        unsigned long long flags);

GP_LOCAL(VIA(gpAddressFree))
CUresult cuMemAddressFree(
        CUdeviceptr ptr,
        size_t size);

GP_LOCAL(VIA(gpMemoryCreate))
CUresult cuMemCreate(
        OUT CUmemGenericAllocationHandle *handle,
        size_t size,
        IN const CUmemAllocationProp *prop,
        unsigned long long flags);

GP_LOCAL(VIA(gpMemoryRelease))
CUresult cuMemRelease(
        CUmemGenericAllocationHandle handle);

GP_LOCAL(VIA(gpMemoryPlace))
CUresult cuMemMap(
        CUdeviceptr ptr,
        size_t size,
        size_t offset,
        CUmemGenericAllocationHandle handle,
        unsigned long long flags);

GP_LOCAL(VIA(gpMemoryUnmap))
CUresult cuMemUnmap(
        CUdeviceptr ptr,
        size_t size);

GP_LOCAL(VIA(gpPeerAccess, gpHostPlace, gpHostWrite))
CUresult cuMemSetAccess(
        CUdeviceptr ptr,
        size_t size,
        IN_N(count) const CUmemAccessDesc *desc,
        size_t count);

GP_LOCAL()
CUresult cuMemGetAccess(
        OUT unsigned long long *flags,
        IN const CUmemLocation *location,
        CUdeviceptr ptr);

GP_LOCAL()
CUresult cuMemGetAllocationGranularity(
        OUT size_t *granularity,
        IN const CUmemAllocationProp *prop,
        CUmemAllocationGranularity_flags option);

GP_LOCAL()
CUresult cuMemGetAllocationPropertiesFromHandle(
        OUT CUmemAllocationProp *prop,
        CUmemGenericAllocationHandle handle);

/* The client creates the file descriptor, which contains a handle. */
GP_LOCAL(VIA(gpPhysicalShare))
CUresult cuMemExportToShareableHandle(
        BY_HOOK void *shareableHandle,
        CUmemGenericAllocationHandle handle,
        CUmemAllocationHandleType handleType,
        unsigned long long flags);

GP_LOCAL(VIA(gpPhysicalOpen))
CUresult cuMemImportFromShareableHandle(
        OUT CUmemGenericAllocationHandle *handle,
        BY_HOOK void *osHandle,
        CUmemAllocationHandleType shHandleType);

GP_LOCAL()
CUresult cuMemRetainAllocationHandle(
        OUT CUmemGenericAllocationHandle *handle,
        BY_HOOK void *addr);
