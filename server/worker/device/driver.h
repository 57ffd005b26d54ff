/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver library that a worker opens: NVIDIA's libcuda.so.1, or libcuda-soft.so.
 *
 * One table of its functions, filled once at start, before any thread; read-only afterwards.
 * A function that the library lacks is NULL if it is optional here, else opening fails.
 */
#ifndef GPD_DRIVER_H
#define GPD_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* X(name as exported). The worker cannot do without these. */
#define GPD_DRIVER_REQUIRED(X)                                                                     \
	X(cuInit)                                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGet)                                                                             \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDeviceTotalMem_v2)                                                                     \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetPCIBusId)                                                                     \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuDevicePrimaryCtxSetFlags_v2)                                                           \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxSynchronize)                                                                        \
	X(cuCtxGetLimit)                                                                           \
	X(cuCtxSetLimit)                                                                           \
	X(cuCtxGetStreamPriorityRange)                                                             \
	X(cuMemGetInfo_v2)                                                                         \
	X(cuMemGetAllocationGranularity)                                                           \
	X(cuMemAddressReserve)                                                                     \
	X(cuMemAddressFree)                                                                        \
	X(cuMemCreate)                                                                             \
	X(cuMemRelease)                                                                            \
	X(cuMemMap)                                                                                \
	X(cuMemUnmap)                                                                              \
	X(cuMemSetAccess)                                                                          \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemHostGetDevicePointer_v2)                                                            \
	X(cuMemcpyHtoDAsync_v2)                                                                    \
	X(cuMemcpyDtoHAsync_v2)                                                                    \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemcpy2DAsync_v2)                                                                      \
	X(cuMemcpy3DAsync_v2)                                                                      \
	X(cuMemsetD8Async)                                                                         \
	X(cuMemsetD16Async)                                                                        \
	X(cuMemsetD32Async)                                                                        \
	X(cuMemsetD2D8Async)                                                                       \
	X(cuMemsetD2D16Async)                                                                      \
	X(cuMemsetD2D32Async)                                                                      \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamQuery)                                                                           \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamWriteValue32_v2)                                                                 \
	X(cuEventCreate)                                                                           \
	X(cuEventRecord)                                                                           \
	X(cuEventQuery)                                                                            \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventElapsedTime_v2)                                                                   \
	X(cuLibraryLoadData)                                                                       \
	X(cuLibraryUnload)                                                                         \
	X(cuLibraryGetKernelCount)                                                                 \
	X(cuLibraryEnumerateKernels)                                                               \
	X(cuLibraryGetGlobal)                                                                      \
	X(cuKernelGetName)                                                                         \
	X(cuKernelGetFunction)                                                                     \
	X(cuKernelGetParamInfo)                                                                    \
	X(cuFuncGetAttribute)                                                                      \
	X(cuFuncSetAttribute)                                                                      \
	X(cuFuncSetCacheConfig)                                                                    \
	X(cuLaunchKernelEx)                                                                        \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)                                    \
	X(cuOccupancyAvailableDynamicSMemPerBlock)                                                 \
	X(cuGetErrorName)                                                                          \
	X(cuGetErrorString)

/* NULL where the library lacks them. */
#define GPD_DRIVER_OPTIONAL(X)                                                                     \
	X(cuCtxRecordEvent)                                                                        \
	X(cuArray3DCreate_v2)                                                                      \
	X(cuArrayDestroy)                                                                          \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMipmappedArrayCreate)                                                                  \
	X(cuMipmappedArrayDestroy)                                                                 \
	X(cuMipmappedArrayGetLevel)                                                                \
	X(cuTexObjectCreate)                                                                       \
	X(cuTexObjectDestroy)                                                                      \
	X(cuSurfObjectCreate)                                                                      \
	X(cuSurfObjectDestroy)                                                                     \
	X(cuDevResourceGenerateDesc)                                                               \
	X(cuDevSmResourceSplitByCount)                                                             \
	X(cuDeviceGetDevResource)                                                                  \
	X(cuEventRecordWithFlags)                                                                  \
	X(cuGreenCtxCreate)                                                                        \
	X(cuGreenCtxDestroy)                                                                       \
	X(cuGreenCtxStreamCreate)                                                                  \
	X(cuLibraryGetModule)                                                                      \
	X(cuOccupancyMaxPotentialClusterSize)                                                      \
	X(cuOccupancyMaxActiveClusters)                                                            \
	X(cuMemExportToShareableHandle)                                                            \
	X(cuMemGetHandleForAddressRange)                                                           \
	X(cuFlushGPUDirectRDMAWrites)

struct gpd_driver {
#define GPD_FIELD(name) __typeof__(name) *name;
	GPD_DRIVER_REQUIRED(GPD_FIELD)
	GPD_DRIVER_OPTIONAL(GPD_FIELD)
#undef GPD_FIELD
	/* Extension of the software device: drops what is queued or running on a stream. */
	CUresult (*gpSoftStreamCancel)(CUstream stream);
	bool software;
	char path[4096];
};

extern struct gpd_driver gpd_driver;

/* Opens path (NULL: NVIDIA's, else the software device). 0, or -1 with one line in error. */
int gpd_driver_open(const char *path, char *error, size_t error_size);

/* Whether this result says that the whole process's CUDA is lost (only a new worker repairs it). */
bool gpd_driver_is_sticky(CUresult result);

#endif /* GPD_DRIVER_H */
