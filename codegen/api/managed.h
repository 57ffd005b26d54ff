/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: managed memory. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(VIA(gpMemoryMap, cuStreamCreateWithPriority, gpCopyIn, gpCopyOut, gpFence), CAPTURE(unsafe))
CUresult cuMemAllocManaged(
        OUT CUdeviceptr *dptr,
        size_t bytesize,
        unsigned int flags);

GP_LOCAL()
CUresult cuMemAdvise_v2(
        CUdeviceptr devPtr,
        size_t count,
        CUmem_advise advice,
        CUmemLocation location);

GP_LOCAL()
CUresult cuMemAdvise(
        CUdeviceptr devPtr,
        size_t count,
        CUmem_advise advice,
        CUdevice device);

GP_LOCAL(VIA(gpCopyIn), CAPTURE(refused))
CUresult cuMemPrefetchAsync_v2(
        CUdeviceptr devPtr,
        size_t count,
        CUmemLocation location,
        unsigned int flags,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn), CAPTURE(refused))
CUresult cuMemPrefetchAsync(
        CUdeviceptr devPtr,
        size_t count,
        CUdevice dstDevice,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn), CAPTURE(refused))
CUresult cuMemPrefetchBatchAsync(
        BY_HOOK CUdeviceptr *dptrs,
        BY_HOOK size_t *sizes,
        size_t count,
        BY_HOOK CUmemLocation *prefetchLocs,
        BY_HOOK size_t *prefetchLocIdxs,
        size_t numPrefetchLocs,
        unsigned long long flags,
        CUstream hStream);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(refused))
CUresult cuMemDiscardBatchAsync(
        BY_HOOK CUdeviceptr *dptrs,
        BY_HOOK size_t *sizes,
        size_t count,
        unsigned long long flags,
        CUstream hStream);

GP_LOCAL(FORWARD(cuMemPrefetchBatchAsync, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream), VIA(gpCopyIn), CAPTURE(refused))
CUresult cuMemDiscardAndPrefetchBatchAsync(
        BY_HOOK CUdeviceptr *dptrs,
        BY_HOOK size_t *sizes,
        size_t count,
        BY_HOOK CUmemLocation *prefetchLocs,
        BY_HOOK size_t *prefetchLocIdxs,
        size_t numPrefetchLocs,
        unsigned long long flags,
        CUstream hStream);

GP_LOCAL()
CUresult cuMemRangeGetAttribute(
        BY_HOOK void *data,
        size_t dataSize,
        CUmem_range_attribute attribute,
        CUdeviceptr devPtr,
        size_t count);

GP_LOCAL()
CUresult cuMemRangeGetAttributes(
        BY_HOOK void **data,
        BY_HOOK size_t *dataSizes,
        BY_HOOK CUmem_range_attribute *attributes,
        size_t numAttributes,
        CUdeviceptr devPtr,
        size_t count);

GP_LOCAL(CHARGES_NOTHING, CAPTURE(refused))
CUresult cuStreamAttachMemAsync(
        CUstream hStream,
        CUdeviceptr dptr,
        size_t length,
        unsigned int flags);
