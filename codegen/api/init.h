/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: initialization and version. The words are defined in vocabulary.h;
 * codegen/README.md explains how to add a call. */

GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL()
CUresult cuDriverGetVersion(
        OUT int *driverVersion);
