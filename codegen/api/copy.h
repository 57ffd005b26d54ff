/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: copies and memsets. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice), CAPTURE(default_stream), QUICK)
CUresult cuMemcpy(
        CUdeviceptr dst,
        CUdeviceptr src,
        size_t ByteCount);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice), CAPTURE(node), QUICK)
CUresult cuMemcpyAsync(
        CUdeviceptr dst,
        CUdeviceptr src,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(ALIAS(cuMemcpy2DUnaligned_v2), VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(default_stream))
CUresult cuMemcpy2D_v2(
        IN const CUDA_MEMCPY2D *pCopy);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(node))
CUresult cuMemcpy2DAsync_v2(
        IN const CUDA_MEMCPY2D *pCopy,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(default_stream))
CUresult cuMemcpy3D_v2(
        IN const CUDA_MEMCPY3D *pCopy);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(node))
CUresult cuMemcpy3DAsync_v2(
        IN const CUDA_MEMCPY3D *pCopy,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn), CAPTURE(default_stream), QUICK)
CUresult cuMemcpyHtoD_v2(
        CUdeviceptr dstDevice,
        BY_HOOK const void *srcHost,
        size_t ByteCount);

GP_LOCAL(VIA(gpCopyIn), CAPTURE(node), QUICK)
CUresult cuMemcpyHtoDAsync_v2(
        CUdeviceptr dstDevice,
        BY_HOOK const void *srcHost,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyOut), CAPTURE(default_stream), QUICK)
CUresult cuMemcpyDtoH_v2(
        BY_HOOK void *dstHost,
        CUdeviceptr srcDevice,
        size_t ByteCount);

GP_LOCAL(VIA(gpCopyOut), CAPTURE(node), QUICK)
CUresult cuMemcpyDtoHAsync_v2(
        BY_HOOK void *dstHost,
        CUdeviceptr srcDevice,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyDevice), CAPTURE(default_stream), QUICK)
CUresult cuMemcpyDtoD_v2(
        CUdeviceptr dstDevice,
        CUdeviceptr srcDevice,
        size_t ByteCount);

GP_LOCAL(VIA(gpCopyDevice), CAPTURE(node), QUICK)
CUresult cuMemcpyDtoDAsync_v2(
        CUdeviceptr dstDevice,
        CUdeviceptr srcDevice,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream), QUICK)
CUresult cuMemsetD8_v2(
        CUdeviceptr dstDevice,
        unsigned char uc,
        size_t N);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream))
CUresult cuMemsetD16_v2(
        CUdeviceptr dstDevice,
        unsigned short us,
        size_t N);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream), QUICK)
CUresult cuMemsetD32_v2(
        CUdeviceptr dstDevice,
        unsigned int ui,
        size_t N);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream))
CUresult cuMemsetD2D8_v2(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned char uc,
        size_t Width,
        size_t Height);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream))
CUresult cuMemsetD2D16_v2(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned short us,
        size_t Width,
        size_t Height);

GP_LOCAL(VIA(gpFill), CAPTURE(default_stream))
CUresult cuMemsetD2D32_v2(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned int ui,
        size_t Width,
        size_t Height);

GP_LOCAL(VIA(gpFill), CAPTURE(node), QUICK)
CUresult cuMemsetD8Async(
        CUdeviceptr dstDevice,
        unsigned char uc,
        size_t N,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(node))
CUresult cuMemsetD16Async(
        CUdeviceptr dstDevice,
        unsigned short us,
        size_t N,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(node), QUICK)
CUresult cuMemsetD32Async(
        CUdeviceptr dstDevice,
        unsigned int ui,
        size_t N,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(node))
CUresult cuMemsetD2D8Async(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned char uc,
        size_t Width,
        size_t Height,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(node))
CUresult cuMemsetD2D16Async(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned short us,
        size_t Width,
        size_t Height,
        CUstream hStream);

GP_LOCAL(VIA(gpFill), CAPTURE(node))
CUresult cuMemsetD2D32Async(
        CUdeviceptr dstDevice,
        size_t dstPitch,
        unsigned int ui,
        size_t Width,
        size_t Height,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyDevice))
CUresult cuMemcpyPeer(
        CUdeviceptr dstDevice,
        CUcontext dstContext,
        CUdeviceptr srcDevice,
        CUcontext srcContext,
        size_t ByteCount);

/* The driver of an H200 captures no copy between contexts, and none within one context. */
GP_LOCAL(VIA(gpCopyDevice), CAPTURE(refused))
CUresult cuMemcpyPeerAsync(
        CUdeviceptr dstDevice,
        CUcontext dstContext,
        CUdeviceptr srcDevice,
        CUcontext srcContext,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyDevice, gpArrayCopy))
CUresult cuMemcpy3DPeer(
        BY_HOOK const CUDA_MEMCPY3D_PEER *pCopy);

GP_LOCAL(VIA(gpCopyDevice, gpArrayCopy), CAPTURE(refused))
CUresult cuMemcpy3DPeerAsync(
        BY_HOOK const CUDA_MEMCPY3D_PEER *pCopy,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice), CAPTURE(declined))
CUresult cuMemcpyBatchAsync_v2(
        BY_HOOK CUdeviceptr *dsts,
        BY_HOOK CUdeviceptr *srcs,
        BY_HOOK size_t *sizes,
        size_t count,
        BY_HOOK CUmemcpyAttributes *attrs,
        BY_HOOK size_t *attrsIdxs,
        size_t numAttrs,
        CUstream hStream);

/* cuda.h of CUDA 13.0 declares only the newer version under this name. */
GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice), CAPTURE(declined))
CUresult cuMemcpyBatchAsync(
        BY_HOOK CUdeviceptr *dsts,
        BY_HOOK CUdeviceptr *srcs,
        BY_HOOK size_t *sizes,
        size_t count,
        BY_HOOK CUmemcpyAttributes *attrs,
        BY_HOOK size_t *attrsIdxs,
        size_t numAttrs,
        BY_HOOK size_t *failIdx,
        CUstream hStream);

GP_LOCAL(FORWARD(cuMemcpy3DBatchAsync, numOps, opList, NULL, flags, hStream), VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(declined))
CUresult cuMemcpy3DBatchAsync_v2(
        size_t numOps,
        IN_N(numOps) CUDA_MEMCPY3D_BATCH_OP *opList,
        unsigned long long flags,
        CUstream hStream);

GP_LOCAL(VIA(gpCopyIn, gpCopyOut, gpCopyDevice, gpArrayCopyIn, gpArrayCopyOut, gpArrayCopy), CAPTURE(declined))
CUresult cuMemcpy3DBatchAsync(
        size_t numOps,
        IN_N(numOps) CUDA_MEMCPY3D_BATCH_OP *opList,
        BY_HOOK size_t *failIdx,
        unsigned long long flags,
        CUstream hStream);
