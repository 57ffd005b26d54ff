/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: error handling. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(SIGNAL_SAFE)
CUresult cuGetErrorString(
        CUresult error,
        OUT STATIC const char **pStr);

GP_LOCAL(SIGNAL_SAFE)
CUresult cuGetErrorName(
        CUresult error,
        OUT STATIC const char **pStr);

/* The error log belongs to the client: it has the errors of the client, and the reasons from the
 * daemon. */
GP_LOCAL()
CUresult cuLogsRegisterCallback(
        CUlogsCallback callbackFunc,
        BY_HOOK void *userData,
        OUT OPT CUlogsCallbackHandle *callback_out);

GP_LOCAL()
CUresult cuLogsUnregisterCallback(
        CUlogsCallbackHandle callback);

GP_LOCAL()
CUresult cuLogsCurrent(
        OUT CUlogIterator *iterator_out,
        unsigned int flags);

GP_LOCAL()
CUresult cuLogsDumpToFile(
        BY_HOOK CUlogIterator *iterator,
        IN_STRING const char *pathToFile,
        unsigned int flags);

GP_LOCAL()
CUresult cuLogsDumpToMemory(
        BY_HOOK CUlogIterator *iterator,
        BY_HOOK char *buffer,
        BY_HOOK size_t *size,
        unsigned int flags);

/* The client stores these settings. A core dump of the GPU cannot be enabled. */
GP_LOCAL()
CUresult cuCoredumpGetAttribute(
        CUcoredumpSettings attrib,
        BY_HOOK void *value,
        BY_HOOK size_t *size);

GP_LOCAL()
CUresult cuCoredumpGetAttributeGlobal(
        CUcoredumpSettings attrib,
        BY_HOOK void *value,
        BY_HOOK size_t *size);

GP_LOCAL()
CUresult cuCoredumpSetAttribute(
        CUcoredumpSettings attrib,
        BY_HOOK void *value,
        BY_HOOK size_t *size);

GP_LOCAL()
CUresult cuCoredumpSetAttributeGlobal(
        CUcoredumpSettings attrib,
        BY_HOOK void *value,
        BY_HOOK size_t *size);

/* Errors after which no context of the process works; a new worker is required. */
GP_SET(sticky_error,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_CONTAINED,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_MPS_CLIENT_TERMINATED,
        CUDA_ERROR_EXTERNAL_DEVICE)
