/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name and description of each CUresult, for cuGetErrorName() and cuGetErrorString().
 *
 * Ownership: the strings are static.
 * Threads: any thread, at any time, also before cuInit().
 * Errors: for a value that is not a CUresult the functions return CUDA_ERROR_INVALID_VALUE and set
 * *name_p or *string_p to NULL.
 */
#ifndef GPC_ERROR_NAMES_H
#define GPC_ERROR_NAMES_H

#include <cuda.h>

/* Returns the identifier of the error, for example "CUDA_ERROR_INVALID_VALUE". */
CUresult gpc_error_name(CUresult error, const char **name_p);

/* The texts are those of NVIDIA's driver, because programs print and compare them. */
CUresult gpc_error_string(CUresult error, const char **string_p);

#endif /* GPC_ERROR_NAMES_H */
