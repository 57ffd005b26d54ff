/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: linear and host memory. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(VIA(gpMemoryInfo))
CUresult cuMemGetInfo_v2(
        OUT OPT size_t *free,
        OUT OPT size_t *total);

GP_LOCAL(VIA(gpMemoryMap), CAPTURE(unsafe), QUICK)
CUresult cuMemAlloc_v2(
        OUT CUdeviceptr *dptr,
        size_t bytesize);

GP_LOCAL(VIA(gpMemoryMap), CAPTURE(unsafe))
CUresult cuMemAllocPitch_v2(
        OUT CUdeviceptr *dptr,
        OUT size_t *pPitch,
        size_t WidthInBytes,
        size_t Height,
        unsigned int ElementSizeBytes);

GP_LOCAL(VIA(gpMemoryUnmap, gpFence), CAPTURE(node), SYNCHRONIZES(dptr), QUICK)
CUresult cuMemFree_v2(
        CUdeviceptr dptr);

GP_LOCAL(CHARGES_NOTHING)
CUresult cuMemGetAddressRange_v2(
        OUT OPT CUdeviceptr *pbase,
        OUT OPT size_t *psize,
        CUdeviceptr dptr);

GP_LOCAL(FORWARD(cuMemHostAlloc, pp, bytesize, 0), CAPTURE(unsafe))
CUresult cuMemAllocHost_v2(
        BY_HOOK void **pp,
        size_t bytesize);

GP_LOCAL(VIA(gpHostUnmap, gpFence), SYNCHRONIZES(p))
CUresult cuMemFreeHost(
        BY_HOOK void *p);

GP_LOCAL(VIA(gpHostReserve, gpHostMap), CAPTURE(unsafe))
CUresult cuMemHostAlloc(
        BY_HOOK void **pp,
        size_t bytesize,
        unsigned int Flags);

GP_LOCAL(VIA(gpHostMap, gpHostWrite, gpHostTake))
CUresult cuMemHostGetDevicePointer_v2(
        OUT CUdeviceptr *pdptr,
        BY_HOOK void *p,
        unsigned int Flags);

GP_LOCAL()
CUresult cuMemHostGetFlags(
        OUT unsigned int *pFlags,
        BY_HOOK void *p);

GP_LOCAL()
CUresult cuMemHostRegister_v2(
        BY_HOOK void *p,
        size_t bytesize,
        unsigned int Flags);

/* Ignores unknown flags, as the driver does; cuMemHostRegister_v2() rejects them. */
GP_LOCAL()
CUresult cuMemHostRegister(
        BY_HOOK void *p,
        size_t bytesize,
        unsigned int Flags);

GP_LOCAL(VIA(gpHostUnmap, gpFence), SYNCHRONIZES(p))
CUresult cuMemHostUnregister(
        BY_HOOK void *p);

GP_LOCAL(QUICK)
CUresult cuPointerGetAttribute(
        BY_HOOK void *data,
        CUpointer_attribute attribute,
        CUdeviceptr ptr);

GP_LOCAL(QUICK)
CUresult cuPointerGetAttributes(
        unsigned int numAttributes,
        IN_N(numAttributes) CUpointer_attribute *attributes,
        BY_HOOK void **data,
        CUdeviceptr ptr);

GP_LOCAL()
CUresult cuPointerSetAttribute(
        BY_HOOK const void *value,
        CUpointer_attribute attribute,
        CUdeviceptr ptr);
