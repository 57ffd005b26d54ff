/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: driver entry points and the private tables. The words are defined in
 * vocabulary.h; codegen/README.md explains how to add a call. */

GP_LOCAL()
CUresult cuGetProcAddress(
        IN_STRING const char *symbol,
        BY_HOOK void **pfn,
        int cudaVersion,
        cuuint64_t flags);

GP_LOCAL()
CUresult cuGetProcAddress_v2(
        IN_STRING const char *symbol,
        BY_HOOK void **pfn,
        int cudaVersion,
        cuuint64_t flags,
        OUT OPT CUdriverProcAddressQueryResult *symbolStatus);

GP_LOCAL()
CUresult cuGetExportTable(
        OUT STATIC const void **ppExportTable,
        IN const CUuuid *pExportTableId);
