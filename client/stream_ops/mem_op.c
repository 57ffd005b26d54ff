/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream_ops/mem_op.h"

#include "client/context/context.h"
#include "client/host/coherence.h"
#include "client/host/host_block.h"
#include "client/host/pending_copy.h"
#include "client/memory/address.h"
#include "client/memory/host_memory.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Limit of NVIDIA's driver. */
#define COUNT_MAX 256

/* Checks that the address is device memory, or host memory that the device can be given access
 * to. */
static CUresult
address_check(CUdeviceptr address, size_t size)
{
	struct gpc_address found;
	CUresult result;

	if (address % size != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpc_address_is_device(address, size))
		return CUDA_SUCCESS;
	gpc_address_lookup(address, &found);
	if (found.kind != GPC_ADDRESS_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_host_memory_scan(found.context, &address, sizeof(address));
	if (result != CUDA_SUCCESS)
		return result;
	return gpc_host_memory_get_device_address(&(uint64_t){ address }, size)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* Returns the address as used by the device. */
static uint64_t
address_to_device(CUdeviceptr address, size_t size)
{
	uint64_t there = address;

	(void)gpc_host_memory_get_device_address(&there, size);
	return there;
}

/* No remote writes reach the GPU's memory, so there is nothing to flush. */
static CUresult
wait_check(CUdeviceptr address, size_t size, unsigned int flags)
{
	CUresult result;

	if ((flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = address_check(address, size);
	if (result == CUDA_SUCCESS)
		gpc_host_block_note_awaited(address);
	return result;
}

static CUresult
write_check(CUdeviceptr address, size_t size, unsigned int flags)
{
	return flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
		       ? CUDA_ERROR_INVALID_VALUE
		       : address_check(address, size);
}

static CUresult
op_check(const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return wait_check(op->waitValue.address, 4, op->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return wait_check(op->waitValue.address, 8, op->waitValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return write_check(op->writeValue.address, 4, op->writeValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return write_check(op->writeValue.address, 8, op->writeValue.flags);
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult
ops_check(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given)
{
	CUresult result = CUDA_SUCCESS;

	if (!given || given->flags != 0 || given->count > COUNT_MAX ||
	    (given->count > 0 && !given->paramArray))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < given->count && result == CUDA_SUCCESS; i++)
		result = op_check(&given->paramArray[i]);
	return result;
}

CUresult
gpc_mem_ops_create(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given, struct gpc_mem_ops **ops_p)
{
	struct gpc_mem_ops *ops;
	CUresult result = ops_check(given);

	if (result != CUDA_SUCCESS)
		return result;
	ops = calloc(1, sizeof(*ops) + given->count * sizeof(*ops->list));
	if (!ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_init(&ops->refs, 1);
	ops->given = *given;
	ops->given.paramArray = ops->list;
	if (given->count > 0)
		memcpy(ops->list, given->paramArray, given->count * sizeof(*ops->list));
	*ops_p = ops;
	return CUDA_SUCCESS;
}

struct gpc_mem_ops *
gpc_mem_ops_ref(struct gpc_mem_ops *ops)
{
	atomic_fetch_add_explicit(&ops->refs, 1, memory_order_relaxed);
	return ops;
}

void
gpc_mem_ops_unref(struct gpc_mem_ops *ops)
{
	if (atomic_fetch_sub_explicit(&ops->refs, 1, memory_order_acq_rel) == 1)
		free(ops);
}

/* Flushes the value's pages first, if it is in managed memory; *managed_p is then set and
 * gpc_managed_end() must follow. */
static CUresult
value_begin_managed(struct gpc_stream *stream, uint64_t address, unsigned int size, bool is_written,
		    bool *managed_p)
{
	*managed_p = gpc_managed_contains(address, size);
	if (!*managed_p)
		return CUDA_SUCCESS;
	return gpc_managed_begin_copy(stream, address, is_written ? size : 0, address,
				      is_written ? 0 : size);
}

static CUresult
wait_post(struct gpc_stream *stream, const CUstreamBatchMemOpParams *op, unsigned int size)
{
	const struct gp_args_gpStreamWait args = {
		.stream = stream->handle.id,
		.address = address_to_device(op->waitValue.address, size),
		.value = size == 4 ? op->waitValue.value : op->waitValue.value64,
		.size = size,
		.condition = op->waitValue.flags,
	};
	bool managed;
	CUresult result = value_begin_managed(stream, args.address, size, false, &managed);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_post_gpStreamWait(stream->context, &args);
	if (managed)
		gpc_managed_end(NULL);
	return result;
}

static CUresult
write_post(struct gpc_stream *stream, const CUstreamBatchMemOpParams *op, unsigned int size)
{
	const struct gp_args_gpStreamWrite args = {
		.stream = stream->handle.id,
		.address = address_to_device(op->writeValue.address, size),
		.value = size == 4 ? op->writeValue.value : op->writeValue.value64,
		.size = size,
	};
	bool managed;
	CUresult result = value_begin_managed(stream, args.address, size, true, &managed);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_host_memory_get_device_address(&(uint64_t){ op->writeValue.address }, size))
		result = gpc_pending_copy_order(&stream->context->scope, stream->handle.id);
	if (result == CUDA_SUCCESS)
		result = gpc_post_gpStreamWrite(stream->context, &args);
	if (managed)
		gpc_managed_end(stream);
	return result;
}

static CUresult
op_post(struct gpc_stream *stream, const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return wait_post(stream, op, 4);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return wait_post(stream, op, 8);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return write_post(stream, op, 4);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return write_post(stream, op, 8);
	default:
		/* Each write includes a barrier. */
		return CUDA_SUCCESS;
	}
}

CUresult
gpc_mem_ops_post(CUstream hStream, const CUDA_BATCH_MEM_OP_NODE_PARAMS *given)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result == CUDA_SUCCESS)
		result = gpc_pending_copy_before_work(&stream->context->scope, stream->handle.id);
	for (unsigned int i = 0; i < given->count && result == CUDA_SUCCESS; i++)
		result = op_post(stream, &given->paramArray[i]);
	if (result != CUDA_SUCCESS)
		return result;
	/* Counted after posting, so that a fence in between does not cover the operations. */
	(void)gpc_session_work_mark(stream->context->scope.session);
	gpc_coherence_after_work(stream->context->scope.session);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
			  unsigned int flags)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS given = { .count = count,
						      .paramArray = paramArray,
						      .flags = flags };
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		result = ops_check(&given);
	return result == CUDA_SUCCESS ? gpc_mem_ops_post(stream, &given) : result;
}

/* Returns CUDA_SUCCESS if the device supports the operations as defined before CUDA 12. */
static CUresult
stream_enter_v1(CUstream hStream)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	return gpc_device_attribute(stream->context->device,
				    CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
gpc_cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
		       unsigned int flags)
{
	CUresult result = stream_enter_v1(stream);

	return result == CUDA_SUCCESS ? gpc_cuStreamBatchMemOp_v2(stream, count, paramArray, flags)
				      : result;
}

/* Functions for a single value: the old version and the present one. */
#define DEFINE_VALUE_CALLS(name, type, which, does, member)                                        \
	CUresult gpc_##name(CUstream stream, CUdeviceptr addr, type value, unsigned int flags)     \
	{                                                                                          \
		CUresult result = stream_enter_v1(stream);                                         \
                                                                                                   \
		return result == CUDA_SUCCESS ? gpc_##name##_v2(stream, addr, value, flags)        \
					      : result;                                            \
	}                                                                                          \
	CUresult gpc_##name##_v2(CUstream stream, CUdeviceptr addr, type value,                    \
				 unsigned int flags)                                               \
	{                                                                                          \
		CUstreamBatchMemOpParams op = { .does = { .operation = (which),                    \
							  .address = addr,                         \
							  .member = value,                         \
							  .flags = flags } };                      \
                                                                                                   \
		return gpc_cuStreamBatchMemOp_v2(stream, 1, &op, 0);                               \
	}

/* gpc_cuStreamWaitValue32(), gpc_cuStreamWaitValue32_v2() */
DEFINE_VALUE_CALLS(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32, waitValue,
		   value)
/* gpc_cuStreamWaitValue64(), gpc_cuStreamWaitValue64_v2() */
DEFINE_VALUE_CALLS(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64, waitValue,
		   value64)
/* gpc_cuStreamWriteValue32(), gpc_cuStreamWriteValue32_v2() */
DEFINE_VALUE_CALLS(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32, writeValue,
		   value)
/* gpc_cuStreamWriteValue64(), gpc_cuStreamWriteValue64_v2() */
DEFINE_VALUE_CALLS(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64, writeValue,
		   value64)
