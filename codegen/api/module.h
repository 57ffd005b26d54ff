/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: modules. */

GP_LOCAL(VIA(gpImageLoad))
CUresult cuModuleLoad(
        OUT CUmodule *module,
        IN_STRING const char *fname);

GP_LOCAL(VIA(gpImageLoad))
CUresult cuModuleLoadData(
        OUT CUmodule *module,
        BY_HOOK const void *image);

GP_LOCAL(VIA(gpImageLoad))
CUresult cuModuleLoadDataEx(
        OUT CUmodule *module,
        BY_HOOK const void *image,
        unsigned int numOptions,
        OUT CUjit_option *options,
        BY_HOOK void **optionValues);

GP_LOCAL(VIA(gpImageLoad))
CUresult cuModuleLoadFatBinary(
        OUT CUmodule *module,
        BY_HOOK const void *fatCubin);

GP_LOCAL(VIA(gpImageUnload))
CUresult cuModuleUnload(
        CUmodule hmod);

GP_LOCAL()
CUresult cuModuleGetLoadingMode(
        OUT CUmoduleLoadingMode *mode);

GP_LOCAL()
CUresult cuModuleGetFunction(
        OUT CUfunction *hfunc,
        CUmodule hmod,
        IN_STRING const char *name);

GP_LOCAL()
CUresult cuModuleGetFunctionCount(
        OUT unsigned int *count,
        CUmodule mod);

GP_LOCAL()
CUresult cuModuleEnumerateFunctions(
        OUT CUfunction *functions,
        unsigned int numFunctions,
        CUmodule mod);

GP_LOCAL(VIA(gpImageGlobal))
CUresult cuModuleGetGlobal_v2(
        OUT CUdeviceptr *dptr,
        OUT size_t *bytes,
        CUmodule hmod,
        IN_STRING const char *name);
