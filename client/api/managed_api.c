/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: managed memory. */
#include "client/context/context.h"
#include "client/copy/managed_copy.h"
#include "gpc_calls.h"

CUresult
gpc_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || bytesize == 0 ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_managed_alloc(context, bytesize, dptr);
}
