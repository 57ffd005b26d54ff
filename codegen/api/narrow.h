/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: functions as they were before CUDA 3.2, with addresses and sizes of 32 bits.  The
 * window lies above them, so no memory of it has such an address; arrays and sizes work.
 */

GP_NARROW(CUDA_MEMCPY2D_v1, CUDA_MEMCPY2D,
        srcXInBytes, srcY, srcMemoryType, srcHost, srcDevice, srcArray, srcPitch, dstXInBytes,
        dstY, dstMemoryType, dstHost, dstDevice, dstArray, dstPitch, WidthInBytes, Height)

GP_NARROW(CUDA_MEMCPY3D_v1, CUDA_MEMCPY3D,
        srcXInBytes, srcY, srcZ, srcLOD, srcMemoryType, srcHost, srcDevice, srcArray, reserved0,
        srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD, dstMemoryType, dstHost, dstDevice,
        dstArray, reserved1, dstPitch, dstHeight, WidthInBytes, Height, Depth)

GP_NARROW(CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY_DESCRIPTOR,
        Width, Height, Format, NumChannels)

GP_NARROW(CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR,
        Width, Height, Depth, Format, NumChannels, Flags)

GP_LOCAL(NARROW(cuDeviceTotalMem_v2))
CUresult cuDeviceTotalMem(
        OUT unsigned int *bytes,
        CUdevice dev);

GP_LOCAL(NARROW(cuModuleGetGlobal_v2))
CUresult cuModuleGetGlobal(
        OUT CUdeviceptr_v1 *dptr,
        OUT unsigned int *bytes,
        CUmodule hmod,
        IN_STRING const char *name);

GP_LOCAL(NARROW(cuMemGetInfo_v2))
CUresult cuMemGetInfo(
        OUT unsigned int *free,
        OUT unsigned int *total);

GP_LOCAL(NARROW(cuMemHostGetDevicePointer_v2))
CUresult cuMemHostGetDevicePointer(
        OUT CUdeviceptr_v1 *pdptr,
        BY_HOOK void *p,
        unsigned int Flags);

GP_LOCAL(NARROW(cuMemAlloc_v2), UNDO(cuMemFree_v2))
CUresult cuMemAlloc(
        OUT CUdeviceptr_v1 *dptr,
        unsigned int bytesize);

GP_LOCAL(NARROW(cuMemAllocPitch_v2), UNDO(cuMemFree_v2))
CUresult cuMemAllocPitch(
        OUT CUdeviceptr_v1 *dptr,
        OUT unsigned int *pPitch,
        unsigned int WidthInBytes,
        unsigned int Height,
        unsigned int ElementSizeBytes);

GP_LOCAL(NARROW(cuMemFree_v2))
CUresult cuMemFree(
        CUdeviceptr_v1 dptr);

GP_LOCAL(NARROW(cuMemGetAddressRange_v2))
CUresult cuMemGetAddressRange(
        OUT OPT CUdeviceptr_v1 *pbase,
        OUT OPT unsigned int *psize,
        CUdeviceptr_v1 dptr);

GP_LOCAL(NARROW(cuMemcpyHtoD_v2))
CUresult cuMemcpyHtoD(
        CUdeviceptr_v1 dstDevice,
        BY_HOOK const void *srcHost,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyDtoH_v2))
CUresult cuMemcpyDtoH(
        BY_HOOK void *dstHost,
        CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyDtoD_v2))
CUresult cuMemcpyDtoD(
        CUdeviceptr_v1 dstDevice,
        CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyDtoA_v2))
CUresult cuMemcpyDtoA(
        CUarray dstArray,
        unsigned int dstOffset,
        CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyAtoD_v2))
CUresult cuMemcpyAtoD(
        CUdeviceptr_v1 dstDevice,
        CUarray srcArray,
        unsigned int srcOffset,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyHtoA_v2))
CUresult cuMemcpyHtoA(
        CUarray dstArray,
        unsigned int dstOffset,
        BY_HOOK const void *srcHost,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyAtoH_v2))
CUresult cuMemcpyAtoH(
        BY_HOOK void *dstHost,
        CUarray srcArray,
        unsigned int srcOffset,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyAtoA_v2))
CUresult cuMemcpyAtoA(
        CUarray dstArray,
        unsigned int dstOffset,
        CUarray srcArray,
        unsigned int srcOffset,
        unsigned int ByteCount);

GP_LOCAL(NARROW(cuMemcpyHtoAAsync_v2))
CUresult cuMemcpyHtoAAsync(
        CUarray dstArray,
        unsigned int dstOffset,
        BY_HOOK const void *srcHost,
        unsigned int ByteCount,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpyAtoHAsync_v2))
CUresult cuMemcpyAtoHAsync(
        BY_HOOK void *dstHost,
        CUarray srcArray,
        unsigned int srcOffset,
        unsigned int ByteCount,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpy2D_v2), ALIAS(cuMemcpy2DUnaligned))
CUresult cuMemcpy2D(
        IN const CUDA_MEMCPY2D_v1 *pCopy);

GP_LOCAL(NARROW(cuMemcpy3D_v2))
CUresult cuMemcpy3D(
        IN const CUDA_MEMCPY3D_v1 *pCopy);

GP_LOCAL(NARROW(cuMemcpyHtoDAsync_v2))
CUresult cuMemcpyHtoDAsync(
        CUdeviceptr_v1 dstDevice,
        BY_HOOK const void *srcHost,
        unsigned int ByteCount,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpyDtoHAsync_v2))
CUresult cuMemcpyDtoHAsync(
        BY_HOOK void *dstHost,
        CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpyDtoDAsync_v2))
CUresult cuMemcpyDtoDAsync(
        CUdeviceptr_v1 dstDevice,
        CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpy2DAsync_v2))
CUresult cuMemcpy2DAsync(
        IN const CUDA_MEMCPY2D_v1 *pCopy,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemcpy3DAsync_v2))
CUresult cuMemcpy3DAsync(
        IN const CUDA_MEMCPY3D_v1 *pCopy,
        CUstream hStream);

GP_LOCAL(NARROW(cuMemsetD8_v2))
CUresult cuMemsetD8(
        CUdeviceptr_v1 dstDevice,
        unsigned char uc,
        unsigned int N);

GP_LOCAL(NARROW(cuMemsetD16_v2))
CUresult cuMemsetD16(
        CUdeviceptr_v1 dstDevice,
        unsigned short us,
        unsigned int N);

GP_LOCAL(NARROW(cuMemsetD32_v2))
CUresult cuMemsetD32(
        CUdeviceptr_v1 dstDevice,
        unsigned int ui,
        unsigned int N);

GP_LOCAL(NARROW(cuMemsetD2D8_v2))
CUresult cuMemsetD2D8(
        CUdeviceptr_v1 dstDevice,
        unsigned int dstPitch,
        unsigned char uc,
        unsigned int Width,
        unsigned int Height);

GP_LOCAL(NARROW(cuMemsetD2D16_v2))
CUresult cuMemsetD2D16(
        CUdeviceptr_v1 dstDevice,
        unsigned int dstPitch,
        unsigned short us,
        unsigned int Width,
        unsigned int Height);

GP_LOCAL(NARROW(cuMemsetD2D32_v2))
CUresult cuMemsetD2D32(
        CUdeviceptr_v1 dstDevice,
        unsigned int dstPitch,
        unsigned int ui,
        unsigned int Width,
        unsigned int Height);

GP_LOCAL(NARROW(cuArrayCreate_v2))
CUresult cuArrayCreate(
        OUT CUarray *pHandle,
        IN const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray);

GP_LOCAL(NARROW(cuArrayGetDescriptor_v2))
CUresult cuArrayGetDescriptor(
        OUT CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor,
        CUarray hArray);

GP_LOCAL(NARROW(cuArray3DCreate_v2))
CUresult cuArray3DCreate(
        OUT CUarray *pHandle,
        IN const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray);

GP_LOCAL(NARROW(cuArray3DGetDescriptor_v2))
CUresult cuArray3DGetDescriptor(
        OUT CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor,
        CUarray hArray);

GP_LOCAL(NARROW(cuTexRefSetAddress_v2))
CUresult cuTexRefSetAddress(
        OUT OPT unsigned int *ByteOffset,
        CUtexref hTexRef,
        CUdeviceptr_v1 dptr,
        unsigned int bytes);

GP_LOCAL(NARROW(cuTexRefSetAddress2D_v3))
CUresult cuTexRefSetAddress2D(
        CUtexref hTexRef,
        IN const CUDA_ARRAY_DESCRIPTOR_v1 *desc,
        CUdeviceptr_v1 dptr,
        unsigned int Pitch);

GP_LOCAL(NARROW(cuTexRefGetAddress_v2))
CUresult cuTexRefGetAddress(
        OUT CUdeviceptr_v1 *pdptr,
        CUtexref hTexRef);
