/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: device memory. */
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "gpc_calls.h"

#define REGISTER_FLAGS                                                                             \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                              \
	 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)
#define PITCH_ALIGNMENT ((size_t)512)

static CUresult
device_memory_alloc(struct gpc_context *context, size_t size, CUdeviceptr *address_p)
{
	uint64_t address;
	CUresult result = gpc_memory_alloc(context, size, &address);

	if (result == CUDA_SUCCESS)
		*address_p = address;
	return result;
}

CUresult
gpc_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	return device_memory_alloc(context, bytesize, dptr);
}

CUresult
gpc_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
		       unsigned int ElementSizeBytes)
{
	struct gpc_context *context;
	size_t pitch, size;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
		return CUDA_ERROR_INVALID_VALUE;
	pitch = (WidthInBytes + PITCH_ALIGNMENT - 1) & ~(PITCH_ALIGNMENT - 1);
	if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = device_memory_alloc(context, size, dptr);
	if (result == CUDA_SUCCESS)
		*pPitch = pitch;
	return result;
}

/* For a thread without a current context: uses the context that owns the memory. */
static CUresult
memory_enter_owner(CUdeviceptr dptr, struct gpc_context **context_p)
{
	struct gpc_address found;
	CUresult result = gpc_enter_initialized();

	gpc_address_lookup(dptr, &found);
	if (result == CUDA_SUCCESS && dptr != 0 && found.kind != GPC_ADDRESS_DEVICE)
		result = CUDA_ERROR_INVALID_VALUE;
	*context_p = found.context;
	return result;
}

CUresult
gpc_cuMemFree_v2(CUdeviceptr dptr)
{
	struct gpc_context *context;
	CUresult result = gpc_context_get_current() ? gpc_enter(&context)
						    : memory_enter_owner(dptr, &context);

	if (result != CUDA_SUCCESS || dptr == 0)
		return result;
	gpc_ipc_memory_withdraw(dptr);
	result = gpc_memory_free(context, dptr);
	/* Memory of a pool: the program guarantees that all uses have ended, so it is freed in no
	 * stream's order. */
	return result == CUDA_SUCCESS ? result : gpc_pool_free(dptr, NULL, 0);
}

CUresult
gpc_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct gp_reply_gpMemoryInfo reply;
	struct gp_args_gpMemoryInfo args;
	struct gpc_context *context;
	uint64_t local;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	args.device = context->device->remote;
	result = gpc_wait_gpMemoryInfo(context, &args, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_memory_available(context, &local))
		return CUDA_ERROR_OUT_OF_MEMORY;
	local += gpc_pool_spare(context->device);
	if (free)
		*free = reply.free + local < reply.total ? reply.free + local : reply.total;
	if (total)
		*total = reply.total;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return gpc_cuMemHostRegister_v2(p, bytesize, Flags & REGISTER_FLAGS);
}
