/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: devices and primary contexts. */

GP_LOCAL()
CUresult cuDeviceGet(
        OUT CUdevice *device,
        int ordinal);

GP_LOCAL()
CUresult cuDeviceGetCount(
        OUT int *count);

GP_LOCAL()
CUresult cuDeviceGetName(
        OUT_BYTES(len) char *name,
        int len,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetUuid(
        OUT CUuuid *uuid,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetUuid_v2(
        OUT CUuuid *uuid,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetLuid(
        OUT_BYTES(8) char *luid,
        OUT unsigned int *deviceNodeMask,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceTotalMem_v2(
        OUT size_t *bytes,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetAttribute(
        OUT int *pi,
        CUdevice_attribute attrib,
        CUdevice dev);

GP_ENUM(CUarray_format)

GP_CALL(0x0111, WAIT, PASSES_COPIES)
CUresult cuDeviceGetTexture1DLinearMaxWidth(
        OUT size_t *maxWidthInElements,
        CUarray_format format,
        unsigned numChannels,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetProperties(
        OUT CUdevprop *prop,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceComputeCapability(
        OUT int *major,
        OUT int *minor,
        CUdevice dev);

GP_LOCAL()
CUresult cuDeviceGetByPCIBusId(
        OUT CUdevice *dev,
        IN_STRING const char *pciBusId);

GP_LOCAL()
CUresult cuDeviceGetPCIBusId(
        OUT_BYTES(len) char *pciBusId,
        int len,
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

GP_LOCAL(ALIAS(cuDevicePrimaryCtxRelease), VIA(gpContextDestroy))
CUresult cuDevicePrimaryCtxRelease_v2(
        CUdevice dev);

GP_LOCAL(ALIAS(cuDevicePrimaryCtxSetFlags))
CUresult cuDevicePrimaryCtxSetFlags_v2(
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
