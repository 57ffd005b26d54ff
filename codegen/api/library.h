/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: libraries and kernels. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(VIA(gpImageLoad))
CUresult cuLibraryLoadData(
        OUT CUlibrary *library,
        BY_HOOK const void *code,
        IN_N(numJitOptions) CUjit_option *jitOptions,
        BY_HOOK void **jitOptionsValues,
        unsigned int numJitOptions,
        IN_N(numLibraryOptions) CUlibraryOption *libraryOptions,
        BY_HOOK void**libraryOptionValues,
        unsigned int numLibraryOptions);

GP_LOCAL(VIA(gpImageLoad))
CUresult cuLibraryLoadFromFile(
        OUT CUlibrary *library,
        IN_STRING const char *fileName,
        IN_N(numJitOptions) CUjit_option *jitOptions,
        BY_HOOK void **jitOptionsValues,
        unsigned int numJitOptions,
        IN_N(numLibraryOptions) CUlibraryOption *libraryOptions,
        BY_HOOK void **libraryOptionValues,
        unsigned int numLibraryOptions);

GP_LOCAL(VIA(gpImageUnload), SYNCHRONIZES(CURRENT))
CUresult cuLibraryUnload(
        CUlibrary library);

GP_LOCAL()
CUresult cuLibraryGetKernel(
        OUT CUkernel *pKernel,
        CUlibrary library,
        IN_STRING const char *name);

GP_LOCAL()
CUresult cuLibraryGetKernelCount(
        OUT FIELD(info->kernel_count) unsigned int *count,
        CUlibrary lib);

GP_LOCAL()
CUresult cuLibraryEnumerateKernels(
        OUT_N(numKernels) CUkernel *kernels,
        unsigned int numKernels,
        CUlibrary lib);

GP_LOCAL()
CUresult cuLibraryGetModule(
        OUT CUmodule *pMod,
        CUlibrary library);

GP_LOCAL(VIA(gpImageGlobal, gpImageManaged))
CUresult cuLibraryGetGlobal(
        OUT CUdeviceptr *dptr,
        OUT size_t *bytes,
        CUlibrary library,
        IN_STRING const char *name);

GP_LOCAL()
CUresult cuKernelGetFunction(
        OUT CUfunction *pFunc,
        CUkernel kernel);

GP_LOCAL()
CUresult cuKernelGetLibrary(
        OUT FIELD(image->owner) CUlibrary *pLib,
        CUkernel kernel);

GP_LOCAL(VIA(cuFuncGetAttribute))
CUresult cuKernelGetAttribute(
        OUT int *pi,
        CUfunction_attribute attrib,
        CUkernel kernel,
        CUdevice dev);

GP_LOCAL(VIA(cuFuncSetAttribute))
CUresult cuKernelSetAttribute(
        CUfunction_attribute attrib,
        int val,
        CUkernel kernel,
        CUdevice dev);

GP_LOCAL(VIA(cuFuncSetCacheConfig))
CUresult cuKernelSetCacheConfig(
        CUkernel kernel,
        CUfunc_cache config,
        CUdevice dev);

GP_LOCAL()
CUresult cuKernelGetName(
        OUT FIELD(info->name) const char **name,
        CUkernel hfunc);

GP_LOCAL()
CUresult cuKernelGetParamInfo(
        CUkernel kernel,
        size_t paramIndex,
        OUT size_t *paramOffset,
        OUT size_t *paramSize);

GP_LOCAL(VIA(gpImageManaged))
CUresult cuLibraryGetManaged(
        OUT OPT CUdeviceptr *dptr,
        OUT OPT size_t *bytes,
        CUlibrary library,
        IN_STRING const char *name);

/* The table of host functions in the image is ignored. */
GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_VALUE))
CUresult cuLibraryGetUnifiedFunction(
        OUT void **fptr,
        CUlibrary library,
        IN_STRING const char *symbol);
