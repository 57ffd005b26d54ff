/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name and the description of every CUresult, for cuGetErrorName and cuGetErrorString.
 * Constant data: any thread, at any time, before cuInit too.
 * A value that is no CUresult yields CUDA_ERROR_INVALID_VALUE and NULL.
 */
#ifndef GPC_ERROR_NAMES_H
#define GPC_ERROR_NAMES_H

#include <cuda.h>

CUresult gpc_error_name(CUresult error, const char **name_p);

/* Programs print and compare these, so they are the words that NVIDIA's driver answers. */
CUresult gpc_error_string(CUresult error, const char **string_p);

#endif /* GPC_ERROR_NAMES_H */
