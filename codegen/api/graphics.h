/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: resources of graphics APIs. No program has such a resource, because the
 * functions that register one belong to those APIs and return errors. The words are defined in
 * vocabulary.h; codegen/README.md explains how to add a call. */

GP_LOCAL(CLIENT_OBJECT(program), RETURNS(CUDA_ERROR_INVALID_HANDLE))
CUresult cuGraphicsUnregisterResource(
        CUgraphicsResource resource);

GP_LOCAL(CLIENT_OBJECT(program), RETURNS(CUDA_ERROR_INVALID_HANDLE))
CUresult cuGraphicsSubResourceGetMappedArray(
        OUT CUarray *pArray,
        CUgraphicsResource resource,
        unsigned int arrayIndex,
        unsigned int mipLevel);

GP_LOCAL(CLIENT_OBJECT(program), RETURNS(CUDA_ERROR_INVALID_HANDLE))
CUresult cuGraphicsResourceGetMappedMipmappedArray(
        OUT CUmipmappedArray *pMipmappedArray,
        CUgraphicsResource resource);

GP_LOCAL(CLIENT_OBJECT(program), RETURNS(CUDA_ERROR_INVALID_HANDLE))
CUresult cuGraphicsResourceGetMappedPointer_v2(
        OUT CUdeviceptr *pDevPtr,
        OUT size_t *pSize,
        CUgraphicsResource resource);

GP_LOCAL(CLIENT_OBJECT(program), ALIAS(cuGraphicsResourceSetMapFlags), RETURNS(CUDA_ERROR_INVALID_HANDLE))
CUresult cuGraphicsResourceSetMapFlags_v2(
        CUgraphicsResource resource,
        unsigned int flags);

GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_HANDLE), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuGraphicsMapResources(
        unsigned int count,
        IN CUgraphicsResource *resources,
        CUstream hStream);

GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_HANDLE), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuGraphicsUnmapResources(
        unsigned int count,
        IN CUgraphicsResource *resources,
        CUstream hStream);
