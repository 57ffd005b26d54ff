/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: error handling. */

GP_LOCAL()
CUresult cuGetErrorString(
        CUresult error,
        OUT STATIC const char **pStr);

GP_LOCAL()
CUresult cuGetErrorName(
        CUresult error,
        OUT STATIC const char **pStr);
