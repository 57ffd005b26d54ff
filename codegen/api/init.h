/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: initialization and version. */

GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL()
CUresult cuDriverGetVersion(
        OUT int *driverVersion);
