/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: what is not supported, and what a program may do instead. */

GP_INSTEAD("copies through host memory",
        "no device says that it has multicast (CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED is 0)",
        cuMulticastAddDevice,
        cuMulticastBindAddr,
        cuMulticastBindMem,
        cuMulticastCreate,
        cuMulticastGetGranularity,
        cuMulticastUnbind)

GP_INSTEAD("device memory of CUDA, as the other API is on another machine than the GPU",
        "what is imported is of another API or device, on another machine than the GPU",
        cuDeviceGetNvSciSyncAttributes,
        cuDestroyExternalMemory,
        cuDestroyExternalSemaphore,
        cuExternalMemoryGetMappedBuffer,
        cuExternalMemoryGetMappedMipmappedArray,
        cuImportExternalMemory,
        cuImportExternalSemaphore,
        cuSignalExternalSemaphoresAsync,
        cuSignalExternalSemaphoresAsync_ptsz,
        cuWaitExternalSemaphoresAsync,
        cuWaitExternalSemaphoresAsync_ptsz,
        cuGraphAddExternalSemaphoresSignalNode,
        cuGraphAddExternalSemaphoresWaitNode,
        cuGraphExecExternalSemaphoresSignalNodeSetParams,
        cuGraphExecExternalSemaphoresWaitNodeSetParams,
        cuGraphExternalSemaphoresSignalNodeGetParams,
        cuGraphExternalSemaphoresSignalNodeSetParams,
        cuGraphExternalSemaphoresWaitNodeGetParams,
        cuGraphExternalSemaphoresWaitNodeSetParams)

GP_INSTEAD("a copy of the image or buffer through host memory",
        "OpenGL, EGL and VDPAU are on another machine than the GPU",
        cuEGLStreamConsumerAcquireFrame,
        cuEGLStreamConsumerConnect,
        cuEGLStreamConsumerConnectWithFlags,
        cuEGLStreamConsumerDisconnect,
        cuEGLStreamConsumerReleaseFrame,
        cuEGLStreamProducerConnect,
        cuEGLStreamProducerDisconnect,
        cuEGLStreamProducerPresentFrame,
        cuEGLStreamProducerReturnFrame,
        cuGLCtxCreate,
        cuGLCtxCreate_v2,
        cuGLGetDevices,
        cuGLGetDevices_v2,
        cuGLInit,
        cuGLMapBufferObject,
        cuGLMapBufferObject_v2,
        cuGLMapBufferObject_v2_ptds,
        cuGLMapBufferObjectAsync,
        cuGLMapBufferObjectAsync_v2,
        cuGLMapBufferObjectAsync_v2_ptsz,
        cuGLRegisterBufferObject,
        cuGLSetBufferObjectMapFlags,
        cuGLUnmapBufferObject,
        cuGLUnmapBufferObjectAsync,
        cuGLUnregisterBufferObject,
        cuGraphicsEGLRegisterImage,
        cuGraphicsGLRegisterBuffer,
        cuGraphicsGLRegisterImage,
        cuGraphicsResourceGetMappedEglFrame,
        cuGraphicsVDPAURegisterOutputSurface,
        cuGraphicsVDPAURegisterVideoSurface,
        cuVDPAUCtxCreate,
        cuVDPAUCtxCreate_v2,
        cuVDPAUGetDevice)

GP_INSTEAD("kernels that decompress, as no device says that it has an engine for that",
        "no device says that it has an engine (CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK is 0)",
        cuMemBatchDecompressAsync,
        cuMemBatchDecompressAsync_ptsz)

GP_INSTEAD("copies through host memory, as no device says that others reach its memory",
        "a descriptor of the GPU's memory would be of another machine (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0)",
        cuMemGetHandleForAddressRange)

GP_PROBED("no other device writes to the GPU's memory (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED is 0)",
        cuFlushGPUDirectRDMAWrites)

GP_INSTEAD("what the program itself saves of its state",
        "the memory that a checkpoint would save is in a worker, with that of other sessions",
        cuCheckpointProcessCheckpoint,
        cuCheckpointProcessGetRestoreThreadId,
        cuCheckpointProcessLock,
        cuCheckpointProcessRestore,
        cuCheckpointProcessUnlock)

GP_PROBED("the profiler of before CUDA 11, which NVIDIA's driver refuses, too",
        cuProfilerInitialize)
