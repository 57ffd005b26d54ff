/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: contexts. */

GP_LOCAL(VIA(gpContextCreate))
CUresult cuCtxCreate_v2(
        OUT CUcontext *pctx,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(VIA(gpContextCreate))
CUresult cuCtxCreate_v3(
        OUT CUcontext *pctx,
        OUT CUexecAffinityParam *paramsArray,
        int numParams,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(VIA(gpContextCreate))
CUresult cuCtxCreate_v4(
        OUT CUcontext *pctx,
        OUT CUctxCreateParams *ctxCreateParams,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(ALIAS(cuCtxDestroy), VIA(gpContextDestroy))
CUresult cuCtxDestroy_v2(
        CUcontext ctx);

GP_LOCAL(ALIAS(cuCtxPushCurrent))
CUresult cuCtxPushCurrent_v2(
        CUcontext ctx);

GP_LOCAL(ALIAS(cuCtxPopCurrent))
CUresult cuCtxPopCurrent_v2(
        OUT OPT CUcontext *pctx);

GP_LOCAL()
CUresult cuCtxSetCurrent(
        CUcontext ctx);

GP_LOCAL()
CUresult cuCtxGetCurrent(
        OUT CUcontext *pctx);

GP_LOCAL()
CUresult cuCtxGetDevice(
        OUT CUdevice *device);

GP_LOCAL()
CUresult cuCtxGetDevice_v2(
        OUT CUdevice *device,
        CUcontext ctx);

GP_LOCAL()
CUresult cuCtxGetFlags(
        OUT unsigned int *flags);

GP_LOCAL()
CUresult cuCtxSetFlags(
        unsigned int flags);

GP_LOCAL()
CUresult cuCtxGetId(
        CUcontext ctx,
        OUT unsigned long long *ctxId);

GP_LOCAL(VIA(gpContextSynchronize), CAPTURE(unsafe))
CUresult cuCtxSynchronize(
void);

GP_LOCAL(VIA(gpContextSynchronize), CAPTURE(unsafe))
CUresult cuCtxSynchronize_v2(
        CUcontext ctx);

GP_LOCAL(VIA(gpContextSetLimit))
CUresult cuCtxSetLimit(
        CUlimit limit,
        size_t value);

GP_LOCAL()
CUresult cuCtxGetLimit(
        OUT size_t *pvalue,
        CUlimit limit);

GP_LOCAL()
CUresult cuCtxGetCacheConfig(
        OUT CUfunc_cache *pconfig);

GP_LOCAL()
CUresult cuCtxSetCacheConfig(
        CUfunc_cache config);

GP_LOCAL()
CUresult cuCtxGetSharedMemConfig(
        OUT CUsharedconfig *pConfig);

GP_LOCAL()
CUresult cuCtxSetSharedMemConfig(
        CUsharedconfig config);

GP_LOCAL()
CUresult cuCtxGetApiVersion(
        CUcontext ctx,
        OUT unsigned int *version);

GP_LOCAL()
CUresult cuCtxGetStreamPriorityRange(
        OUT int *leastPriority,
        OUT int *greatestPriority);

GP_LOCAL()
CUresult cuCtxResetPersistingL2Cache(void);

GP_LOCAL()
CUresult cuCtxAttach(
        OUT CUcontext *pctx,
        unsigned int flags);

GP_LOCAL()
CUresult cuCtxDetach(
        CUcontext ctx);

GP_LOCAL()
CUresult cuCtxEnablePeerAccess(
        CUcontext peerContext,
        unsigned int Flags);

GP_LOCAL()
CUresult cuCtxDisablePeerAccess(
        CUcontext peerContext);
