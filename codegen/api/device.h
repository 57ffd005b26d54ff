/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: devices and primary contexts. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL(QUICK)
CUresult cuDeviceGet(
        OUT FIELD(ordinal) CUdevice *device,
        CUdevice ordinal);

GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT COMPUTE(gpc_device_count) int *count);

GP_LOCAL()
CUresult cuDeviceGetName(
        OUT_BYTES(len) FIELD(name) char *name,
        int len,
        CUdevice dev);

GP_LOCAL(ALIAS(cuDeviceGetUuid))
CUresult cuDeviceGetUuid_v2(
        OUT FIELD(uuid) CUuuid *uuid,
        CUdevice dev);

/* Available on Windows only. */
GP_LOCAL(RETURNS(CUDA_ERROR_NOT_SUPPORTED))
CUresult cuDeviceGetLuid(
        OUT_BYTES(8) char *luid,
        OUT unsigned int *deviceNodeMask,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceTotalMem_v2(
        OUT FIELD(total_memory) size_t *bytes,
        CUdevice dev);

/* From before CUDA 3.2. Scripts that look up symbols themselves still call it. */
GP_LOCAL()
CUresult cuDeviceTotalMem(
        OUT COMPUTE(gpc_device_total_memory_32) unsigned int *bytes,
        CUdevice dev);

/* Returns 0 for attributes that the daemon's driver does not know: the runtime of a newer toolkit
 * fails if one of its queries fails. No driver has had attributes above 1023. */
GP_LOCAL(QUICK)
CUresult cuDeviceGetAttribute(
        OUT COMPUTE(gpc_device_attribute, attrib) int *pi,
        WITHIN(1, 1023) CUdevice_attribute attrib,
        CUdevice dev);

GP_ENUM(CUarray_format)

GP_CALL(0x0111, WAIT, CLIENT_HOOK, NO_DTOH_WAIT)
CUresult cuDeviceGetTexture1DLinearMaxWidth(
        OUT size_t *maxWidthInElements,
        CUarray_format format,
        unsigned numChannels,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetProperties(
        OUT COMPUTE(gpc_device_properties) CUdevprop *prop,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceComputeCapability(
        OUT COMPUTE(gpc_device_attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) int *major,
        OUT COMPUTE(gpc_device_attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) int *minor,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetByPCIBusId(
        OUT CUdevice *dev,
        IN_STRING const char *pciBusId);

GP_LOCAL()
CUresult cuDeviceGetPCIBusId(
        OUT_BYTES(len) FIELD(pci_bus_id) char *pciBusId,
        WITHIN(13, 0x7fffffff) int len,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetExecAffinitySupport(
        OUT int *pi,
        CUexecAffinityType type,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceCanAccessPeer(
        OUT int *canAccessPeer,
        CUdevice dev,
        CUdevice peerDev);

GP_LOCAL()
CUresult cuDeviceGetP2PAttribute(
        OUT int*value,
        CUdevice_P2PAttribute attrib,
        CUdevice srcDevice,
        CUdevice dstDevice);

GP_LOCAL(VIA(gpContextCreate))
CUresult cuDevicePrimaryCtxRetain(
        OUT CUcontext *pctx,
        CUdevice dev);

GP_LOCAL(VIA(gpContextDestroy))
CUresult cuDevicePrimaryCtxRelease_v2(
        CUdevice dev);

/* Succeeds also for a context that is not retained. */
GP_LOCAL(VIA(gpContextDestroy))
CUresult cuDevicePrimaryCtxRelease(
        CUdevice dev);

GP_LOCAL()
CUresult cuDevicePrimaryCtxSetFlags_v2(
        CUdevice dev,
        unsigned int flags);

/* For a context that is not active. */
GP_LOCAL()
CUresult cuDevicePrimaryCtxSetFlags(
        CUdevice dev,
        unsigned int flags);

GP_LOCAL()
CUresult cuDevicePrimaryCtxGetState(
        CUdevice dev,
        OUT unsigned int *flags,
        OUT int *active);

GP_LOCAL(ALIAS(cuDevicePrimaryCtxReset), VIA(gpContextDestroy))
CUresult cuDevicePrimaryCtxReset_v2(
        CUdevice dev);

/* Notifications of the client only. The events that they report do not occur. */
GP_KIND(notification, TYPES(CUasyncCallbackHandle))

GP_LOCAL()
CUresult cuDeviceRegisterAsyncNotification(
        CUdevice device,
        CUasyncCallback callbackFunc,
        BY_HOOK void *userData,
        OUT CUasyncCallbackHandle *callback);

GP_LOCAL()
CUresult cuDeviceUnregisterAsyncNotification(
        CUdevice device,
        CUasyncCallbackHandle callback);

/* Returns "running" for the calling process, also before cuInit(). The state of other processes is
 * unknown. */
GP_LOCAL()
CUresult cuCheckpointProcessGetState(
        int pid,
        OUT CUprocessState *state);

/* Attributes of the devices that gpupool does not support over the network, and reports as
 * absent. */
GP_SET(absent_attribute,
        CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
        CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
        CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
        CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
        CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
        CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
        CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
        CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,
        CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED)

/* The host is another machine: the link supports no atomic operations. */
GP_LOCAL()
CUresult cuDeviceGetHostAtomicCapabilities(
        OUT_N(count) unsigned int *capabilities,
        IN_N(count) const CUatomicOperation *operations,
        unsigned int count,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetP2PAtomicCapabilities(
        OUT_N(count) unsigned int *capabilities,
        IN_N(count) const CUatomicOperation *operations,
        unsigned int count,
        CUdevice srcDevice,
        CUdevice dstDevice);
