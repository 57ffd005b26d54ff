/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: functions and launches. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL()
CUresult cuFuncGetModule(
        OUT CUmodule *hmod,
        CUfunction hfunc);

GP_LOCAL()
CUresult cuFuncGetName(
        OUT FIELD(info->name) const char **name,
        CUfunction hfunc);

GP_LOCAL()
CUresult cuFuncGetParamInfo(
        CUfunction func,
        size_t paramIndex,
        OUT size_t *paramOffset,
        OUT size_t *paramSize);

GP_LOCAL()
CUresult cuFuncIsLoaded(
        OUT FIXED(CU_FUNCTION_LOADING_STATE_LOADED) CUfunctionLoadingState *state,
        CUfunction function);

GP_LOCAL(RETURNS(CUDA_SUCCESS))
CUresult cuFuncLoad(
        CUfunction function);

GP_CALL(0x0511, WAIT, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT)
CUresult cuFuncGetAttribute(
        OUT int *pi,
        CUfunction_attribute attrib,
        CUfunction hfunc);

/* The client usually sends gpFunctionAttribute instead, which has no reply. */
GP_CALL(0x0512, WAIT, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT)
CUresult cuFuncSetAttribute(
        CUfunction hfunc,
        CUfunction_attribute attrib,
        int value);

GP_CALL(0x0513, POST, CLIENT_HOOK, SERVER_HOOK, NO_DTOH_WAIT)
CUresult cuFuncSetCacheConfig(
        CUfunction hfunc,
        CUfunc_cache config);

/* Deprecated, and without effect on GPUs since Maxwell. */
GP_LOCAL(RETURNS(CUDA_SUCCESS))
CUresult cuFuncSetSharedMemConfig(
        CUfunction hfunc,
        WITHIN(0, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) CUsharedconfig config);

GP_LOCAL(VIA(gpLaunch, gpLaunchChecked), CAPTURE(node), QUICK)
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

GP_LOCAL(VIA(gpLaunch, gpLaunchChecked), CAPTURE(node), QUICK)
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

/* Supported on one device: the client cannot recognize kernels that wait for kernels on other
 * devices. */
GP_LOCAL(VIA(gpLaunchChecked), CAPTURE(node))
CUresult cuLaunchCooperativeKernelMultiDevice(
        IN_N(numDevices) CUDA_LAUNCH_PARAMS *launchParamsList,
        unsigned int numDevices,
        unsigned int flags);
