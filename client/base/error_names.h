/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name and description of each CUresult, for cuGetErrorName() and cuGetErrorString().
 *
 * Ownership: the strings are static.
 * Threads: any thread, at any time, also before cuInit().
 * Errors: the functions return CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if the pointer is NULL or
 * the value is not a CUresult of cuda.h. For such a value, *name_p or *string_p is set to NULL.
 */
#ifndef GPC_ERROR_NAMES_H
#define GPC_ERROR_NAMES_H

#include <cuda.h>

/* Sets *name_p to the identifier of the error, for example "CUDA_ERROR_INVALID_VALUE". */
CUresult gpc_error_name(CUresult error, const char **name_p);

/* Sets *string_p to the description of the error. The texts are those of NVIDIA's driver, because
 * programs print and compare them. */
CUresult gpc_error_string(CUresult error, const char **string_p);

#endif /* GPC_ERROR_NAMES_H */
