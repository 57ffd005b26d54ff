/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: functions and launches. */

GP_LOCAL()
CUresult cuFuncGetModule(
        OUT CUmodule *hmod,
        CUfunction hfunc);

GP_LOCAL()
CUresult cuFuncGetName(
        BY_HOOK const char **name,
        CUfunction hfunc);

GP_LOCAL()
CUresult cuFuncGetParamInfo(
        CUfunction func,
        size_t paramIndex,
        OUT size_t *paramOffset,
        OUT size_t *paramSize);

GP_LOCAL()
CUresult cuFuncIsLoaded(
        OUT CUfunctionLoadingState *state,
        CUfunction function);

GP_LOCAL()
CUresult cuFuncLoad(
        CUfunction function);

GP_CALL(0x0511, WAIT, CLIENT_HOOK, SERVER_HOOK, PASSES_COPIES)
CUresult cuFuncGetAttribute(
        OUT int *pi,
        CUfunction_attribute attrib,
        CUfunction hfunc);

/* Mostly by way of gpFunctionAttribute, which nobody waits for. */
GP_CALL(0x0512, WAIT, CLIENT_HOOK, SERVER_HOOK, PASSES_COPIES)
CUresult cuFuncSetAttribute(
        CUfunction hfunc,
        CUfunction_attribute attrib,
        int value);

GP_CALL(0x0513, POST, CLIENT_HOOK, SERVER_HOOK, PASSES_COPIES)
CUresult cuFuncSetCacheConfig(
        CUfunction hfunc,
        CUfunc_cache config);

GP_LOCAL()
CUresult cuFuncSetSharedMemConfig(
        CUfunction hfunc,
        CUsharedconfig config);

GP_LOCAL(VIA(gpLaunch, gpLaunchChecked), CAPTURE(node))
CUresult cuLaunchKernel(
        CUfunction f,
        unsigned int gridDimX,
        unsigned int gridDimY,
        unsigned int gridDimZ,
        unsigned int blockDimX,
        unsigned int blockDimY,
        unsigned int blockDimZ,
        unsigned int sharedMemBytes,
        CUstream hStream,
        BY_HOOK void **kernelParams,
        BY_HOOK void **extra);

GP_LOCAL(VIA(gpLaunch, gpLaunchChecked), CAPTURE(node))
CUresult cuLaunchKernelEx(
        IN const CUlaunchConfig *config,
        CUfunction f,
        BY_HOOK void **kernelParams,
        BY_HOOK void **extra);

GP_LOCAL(VIA(gpLaunch, gpLaunchChecked), CAPTURE(node))
CUresult cuLaunchCooperativeKernel(
        CUfunction f,
        unsigned int gridDimX,
        unsigned int gridDimY,
        unsigned int gridDimZ,
        unsigned int blockDimX,
        unsigned int blockDimY,
        unsigned int blockDimZ,
        unsigned int sharedMemBytes,
        CUstream hStream,
        BY_HOOK void **kernelParams);
