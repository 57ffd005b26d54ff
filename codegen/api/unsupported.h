/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: what is not supported, and what a program may do instead. */

GP_INSTEAD("copies through host memory",
        cuMulticastAddDevice,
        cuMulticastBindAddr,
        cuMulticastBindMem,
        cuMulticastCreate,
        cuMulticastGetGranularity,
        cuMulticastUnbind)

GP_INSTEAD("device memory of CUDA, as the other API is on another machine than the GPU",
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

GP_INSTEAD("kernels that decompress, as no device says that it has an engine for that",
        cuMemBatchDecompressAsync,
        cuMemBatchDecompressAsync_ptsz)

GP_INSTEAD("copies through host memory, as no device says that others reach its memory",
        cuMemGetHandleForAddressRange)

GP_PROBED(
        cuFlushGPUDirectRDMAWrites,
        cuCheckpointProcessCheckpoint,
        cuCheckpointProcessGetRestoreThreadId,
        cuCheckpointProcessLock,
        cuCheckpointProcessRestore,
        cuCheckpointProcessUnlock,
        cuProfilerInitialize)
