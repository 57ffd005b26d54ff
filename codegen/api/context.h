/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: contexts. The words are defined in vocabulary.h; codegen/README.md explains how
 * to add a call. */

/* Creates a context of version 1 of the API. */
GP_LOCAL(VIA(gpContextMake, gpContextCreate), SYNCHRONIZES(CURRENT))
CUresult cuCtxCreate(
        OUT CUcontext *pctx,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(VIA(gpContextMake, gpContextCreate), SYNCHRONIZES(CURRENT))
CUresult cuCtxCreate_v2(
        OUT CUcontext *pctx,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(VIA(gpContextMake, gpContextCreate), SYNCHRONIZES(CURRENT))
CUresult cuCtxCreate_v3(
        OUT CUcontext *pctx,
        IN_N(numParams) CUexecAffinityParam *paramsArray,
        int numParams,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(VIA(gpContextMake, gpContextCreate), SYNCHRONIZES(CURRENT))
CUresult cuCtxCreate_v4(
        OUT CUcontext *pctx,
        IN OPT CUctxCreateParams *ctxCreateParams,
        unsigned int flags,
        CUdevice dev);

GP_LOCAL(ALIAS(cuCtxDestroy), VIA(gpContextDestroy))
CUresult cuCtxDestroy_v2(
        CUcontext ctx);

GP_LOCAL(ALIAS(cuCtxPushCurrent), QUICK)
CUresult cuCtxPushCurrent_v2(
        CUcontext ctx);

GP_LOCAL(ALIAS(cuCtxPopCurrent), QUICK)
CUresult cuCtxPopCurrent_v2(
        OUT OPT CUcontext *pctx);

GP_LOCAL(QUICK)
CUresult cuCtxSetCurrent(
        CUcontext ctx);

GP_LOCAL(QUICK)
CUresult cuCtxGetCurrent(
        OUT CUcontext *pctx);

GP_LOCAL(CLIENT_OBJECT(current), QUICK)
CUresult cuCtxGetDevice(
        OUT FIELD(device->ordinal) CUdevice *device);

GP_LOCAL()
CUresult cuCtxGetDevice_v2(
        OUT FIELD(device->ordinal) CUdevice *device,
        CUcontext ctx);

GP_LOCAL(CLIENT_OBJECT(current))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) unsigned int *flags);

GP_LOCAL()
CUresult cuCtxSetFlags(
        unsigned int flags);

GP_LOCAL()
CUresult cuCtxGetId(
        CUcontext ctx,
        OUT FIELD(number) unsigned long long *ctxId);

GP_LOCAL(VIA(gpContextSynchronize), CAPTURE(unsafe), QUICK)
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

GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetCacheConfig(
        OUT FIELD(cache_config) CUfunc_cache *pconfig);

/* A preference, which a shared context cannot apply. The client only stores it for
 * cuCtxGetCacheConfig(). */
GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetCacheConfig(
        STORE(cache_config) WITHIN(0, CU_FUNC_CACHE_PREFER_EQUAL) CUfunc_cache config);

GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetSharedMemConfig(
        OUT FIELD(shared_config) CUsharedconfig *pConfig);

/* Without effect on GPUs after the Kepler generation. The client only stores it for
 * cuCtxGetSharedMemConfig(). */
GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetSharedMemConfig(
        STORE(shared_config) WITHIN(0, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) CUsharedconfig config);

GP_LOCAL()
CUresult cuCtxGetApiVersion(
        CUcontext ctx,
        OUT FIELD(api_version) unsigned int *version);

GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetStreamPriorityRange(
        OUT OPT FIELD(device->priority_least) int *leastPriority,
        OUT OPT FIELD(device->priority_greatest) int *greatestPriority);

/* Records the work of all streams of the context. CAPTURE(node) applies to each stream of the
 * context that is captured. */
GP_CALL(0x0121, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, AFTER_ALL, CAPTURE(node))
CUresult cuCtxRecordEvent(
        CUcontext hCtx,
        CUevent hEvent);

GP_CALL(0x0122, POST, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, BEFORE_ALL, UNBOUNDED, CAPTURE(node))
CUresult cuCtxWaitEvent(
        CUcontext hCtx,
        CUevent hEvent);

/* No affinity can be requested (cuDeviceGetExecAffinitySupport): the context has all
 * multiprocessors. */
GP_LOCAL()
CUresult cuCtxGetExecAffinity(
        OUT CUexecAffinityParam *pExecAffinity,
        CUexecAffinityType type);

/* Sessions cannot have persisting lines in the L2 cache, which all sessions of the device share. */
GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuCtxResetPersistingL2Cache(void);

GP_LOCAL()
CUresult cuCtxAttach(
        OUT CUcontext *pctx,
        unsigned int flags);

GP_LOCAL()
CUresult cuCtxDetach(
        CUcontext ctx);

GP_LOCAL(VIA(gpPeerAccess))
CUresult cuCtxEnablePeerAccess(
        CUcontext peerContext,
        unsigned int Flags);

GP_LOCAL()
CUresult cuCtxDisablePeerAccess(
        CUcontext peerContext);
