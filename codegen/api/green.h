/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: green contexts and their multiprocessors. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpResource))
CUresult cuDeviceGetDevResource(
        CUdevice device,
        OUT CUdevResource *resource,
        CUdevResourceType type);

GP_LOCAL(VIA(gpResource))
CUresult cuCtxGetDevResource(
        CUcontext hCtx,
        OUT CUdevResource *resource,
        CUdevResourceType type);

GP_LOCAL(VIA(gpResource))
CUresult cuGreenCtxGetDevResource(
        CUgreenCtx hCtx,
        OUT CUdevResource *resource,
        CUdevResourceType type);

GP_LOCAL(VIA(gpResourceSplit))
CUresult cuDevSmResourceSplitByCount(
        BY_HOOK CUdevResource *groups,
        INOUT unsigned int *nbGroups,
        IN const CUdevResource *input,
        OUT OPT CUdevResource *remaining,
        unsigned int useFlags,
        unsigned int minCount);

GP_LOCAL()
CUresult cuDevResourceGenerateDesc(
        OUT CUdevResourceDesc *phDesc,
        IN_N(nbResources) CUdevResource *resources,
        unsigned int nbResources);

GP_LOCAL(VIA(gpGreenMake))
CUresult cuGreenCtxCreate(
        OUT CUgreenCtx *phCtx,
        CUdevResourceDesc desc,
        CUdevice dev,
        unsigned int flags);

GP_LOCAL(VIA(gpContextDestroy))
CUresult cuGreenCtxDestroy(
        CUgreenCtx hCtx);

GP_LOCAL()
CUresult cuGreenCtxGetId(
        CUgreenCtx greenCtx,
        OUT FIELD(context->number) unsigned long long *greenCtxId);

GP_LOCAL()
CUresult cuCtxFromGreenCtx(
        OUT FIELD(context->handle.token) CUcontext *pContext,
        CUgreenCtx hCtx);

GP_LOCAL(VIA(cuStreamCreateWithPriority))
CUresult cuGreenCtxStreamCreate(
        OUT CUstream *phStream,
        CUgreenCtx greenCtx,
        unsigned int flags,
        int priority);

/* Equal to the call on the context of the green context. */
GP_LOCAL(VIA(cuCtxRecordEvent), CAPTURE(node))
CUresult cuGreenCtxRecordEvent(
        CUgreenCtx hCtx,
        CUevent hEvent);

GP_LOCAL(VIA(cuCtxWaitEvent), CAPTURE(node))
CUresult cuGreenCtxWaitEvent(
        CUgreenCtx hCtx,
        CUevent hEvent);
