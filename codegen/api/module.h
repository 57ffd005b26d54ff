/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: modules, and the linker that creates their images. The words are defined in
 * vocabulary.h; codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpImageLoad), SYNCHRONIZES(CURRENT))
CUresult cuModuleLoad(
        OUT CUmodule *module,
        IN_STRING const char *fname);

GP_LOCAL(FORWARD(cuModuleLoadDataEx, module, image, 0, NULL, NULL), ALIAS(cuModuleLoadFatBinary), VIA(gpImageLoad), SYNCHRONIZES(CURRENT))
CUresult cuModuleLoadData(
        OUT CUmodule *module,
        BY_HOOK const void *image);

GP_LOCAL(VIA(gpImageLoad), SYNCHRONIZES(CURRENT))
CUresult cuModuleLoadDataEx(
        OUT CUmodule *module,
        BY_HOOK const void *image,
        unsigned int numOptions,
        IN_N(numOptions) CUjit_option *options,
        BY_HOOK void **optionValues);

GP_LOCAL(VIA(gpImageUnload), SYNCHRONIZES(CURRENT))
CUresult cuModuleUnload(
        CUmodule hmod);

GP_LOCAL(CLIENT_OBJECT(session))
CUresult cuModuleGetLoadingMode(
        OUT COMPUTE(gpc_config_module_loading) CUmoduleLoadingMode *mode);

GP_LOCAL()
CUresult cuModuleGetFunction(
        OUT CUfunction *hfunc,
        CUmodule hmod,
        IN_STRING const char *name);

GP_LOCAL()
CUresult cuModuleGetFunctionCount(
        OUT FIELD(image->info->kernel_count) unsigned int *count,
        CUmodule mod);

GP_LOCAL()
CUresult cuModuleEnumerateFunctions(
        OUT_N(numFunctions) CUfunction *functions,
        unsigned int numFunctions,
        CUmodule mod);

GP_LOCAL(VIA(gpImageGlobal, gpImageManaged))
CUresult cuModuleGetGlobal_v2(
        OUT CUdeviceptr *dptr,
        OUT size_t *bytes,
        CUmodule hmod,
        IN_STRING const char *name);

/* Options of the compiler. Hand-written code copies the compiler's log from the replies to the
 * buffers. */
GP_OPTIONS(CUjit_option,
        CU_JIT_MAX_REGISTERS,
        CU_JIT_OPTIMIZATION_LEVEL,
        CU_JIT_TARGET_FROM_CUCONTEXT,
        CU_JIT_TARGET,
        CU_JIT_FALLBACK_STRATEGY,
        CU_JIT_GENERATE_DEBUG_INFO,
        CU_JIT_LOG_VERBOSE,
        CU_JIT_GENERATE_LINE_INFO,
        CU_JIT_CACHE_MODE,
        CU_JIT_LTO,
        CU_JIT_FTZ,
        CU_JIT_PREC_DIV,
        CU_JIT_PREC_SQRT,
        CU_JIT_FMA,
        CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES,
        CU_JIT_POSITION_INDEPENDENT_CODE,
        CU_JIT_MIN_CTA_PER_SM,
        CU_JIT_MAX_THREADS_PER_BLOCK,
        CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
        CLIENT_ONLY CU_JIT_SPLIT_COMPILE,
        CLIENT_ONLY CU_JIT_THREADS_PER_BLOCK,
        CLIENT_ONLY CU_JIT_WALL_TIME,
        CLIENT_ONLY CU_JIT_INFO_LOG_BUFFER,
        CLIENT_ONLY CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CLIENT_ONLY CU_JIT_ERROR_LOG_BUFFER,
        CLIENT_ONLY CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)

/* The linker. Each reply has its log. */
GP_KIND(linker, TYPES(CUlinkState), COST(16384), DESTROY(cuLinkDestroy), LIFETIME(context))

GP_ENUM(CUjitInputType)

GP_DRIVER_OPTIONAL(cuLinkCreate_v2)
GP_DRIVER_OPTIONAL(cuLinkAddData_v2)
GP_DRIVER_OPTIONAL(cuLinkComplete)

GP_LOCAL(ALIAS(cuLinkCreate), VIA(gpLinkCreate))
CUresult cuLinkCreate_v2(
        unsigned int numOptions,
        BY_HOOK CUjit_option *options,
        BY_HOOK void **optionValues,
        OUT CUlinkState *stateOut);

GP_LOCAL(ALIAS(cuLinkAddData), VIA(gpLinkAdd))
CUresult cuLinkAddData_v2(
        CUlinkState state,
        CUjitInputType type,
        BY_HOOK void *data,
        size_t size,
        IN_STRING const char *name,
        unsigned int numOptions,
        BY_HOOK CUjit_option *options,
        BY_HOOK void **optionValues);

/* The client reads the file; the daemon opens none. */
GP_LOCAL(ALIAS(cuLinkAddFile), VIA(gpLinkAdd))
CUresult cuLinkAddFile_v2(
        CUlinkState state,
        CUjitInputType type,
        IN_STRING const char *path,
        unsigned int numOptions,
        BY_HOOK CUjit_option *options,
        BY_HOOK void **optionValues);

GP_LOCAL(VIA(gpLinkComplete))
CUresult cuLinkComplete(
        CUlinkState state,
        BY_HOOK void **cubinOut,
        OUT OPT size_t *sizeOut);

GP_CALL(0x0524, WAIT, CLIENT_HOOK)
CUresult cuLinkDestroy(
        DROP CUlinkState state);

/* cuLinkDestroy without a reply. */
GP_MESSAGE(0x0525, POST, SERVER_HOOK)
void gpLinkDrop(
        DROP CUlinkState linker);

GP_MESSAGE(0x0521, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpLinkCreate(
        NEW CUlinkState linker,
        unsigned int option_count,
        IN_OPTIONS(option_count, option_values) CUjit_option *options,
        BY_HOOK void **option_values);

/* The bulk tail is the input. */
GP_MESSAGE(0x0522, WAIT, SERVER_HOOK, BULK_IN, COMPILES)
void gpLinkAdd(
        CUlinkState linker,
        CUjitInputType type,
        IN_STRING const char *name,
        unsigned int option_count,
        IN_OPTIONS(option_count, option_values) CUjit_option *options,
        BY_HOOK void **option_values,
        OUT_BYTES(BY_HOOK) void *info,
        OUT_BYTES(BY_HOOK) void *error);

GP_MESSAGE(0x0523, WAIT, SERVER_HOOK, COMPILES)
void gpLinkComplete(
        CUlinkState linker,
        OUT_BYTES(BY_HOOK) void *image,
        OUT_BYTES(BY_HOOK) void *info,
        OUT_BYTES(BY_HOOK) void *error);

