/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the fake wire layer shares with other processes: names, and handles that contain
 * them. */
#include "gpc_calls.h"
#include "protocol/ipc_handle.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>

CUresult
gpc_wait_gpMemoryShare(struct gpc_context *c, const struct gp_args_gpMemoryShare *args,
		       struct gp_reply_gpMemoryShare *reply, void **raw)
{
	struct gp_ipc_handle *handle = calloc(1, sizeof(*handle));

	assert_non_null(handle);
	memcpy(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic));
	handle->kind = GP_IPC_MEMORY;
	handle->number = args->share;
	handle->mapping = FAKE_WIRE_GRANULE;
	handle->offset = args->address % FAKE_WIRE_GRANULE;
	handle->size = args->size;
	reply->handle = (struct gp_bytes){ handle, sizeof(*handle) };
	*raw = handle;
	fake.shares++;
	return CUDA_SUCCESS;
}

static CUresult
share_of_pool(enum gp_ipc_kind kind, uint32_t share, struct gp_bytes *bytes, void **raw)
{
	struct gp_ipc_handle *handle = calloc(1, sizeof(*handle));

	assert_non_null(handle);
	memcpy(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic));
	handle->kind = (uint8_t)kind;
	handle->device = 1;
	handle->number = share;
	*bytes = (struct gp_bytes){ handle, sizeof(*handle) };
	*raw = handle;
	fake.shares++;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpPoolShare(struct gpc_context *c, const struct gp_args_gpPoolShare *args,
		     struct gp_reply_gpPoolShare *reply, void **raw)
{
	return share_of_pool(GP_IPC_POOL, args->share, &reply->handle, raw);
}

CUresult
gpc_wait_gpPoolMemoryShare(struct gpc_context *c, const struct gp_args_gpPoolMemoryShare *args,
			   struct gp_reply_gpPoolMemoryShare *reply, void **raw)
{
	CUresult result = share_of_pool(GP_IPC_POOL_MEMORY, args->share, &reply->handle, raw);

	assert_int_equal(args->address % FAKE_WIRE_GRANULE, 0);
	((struct gp_ipc_handle *)*raw)->mapping = args->size;
	((struct gp_ipc_handle *)*raw)->size = args->size;
	return result;
}

CUresult
gpc_wait_gpPoolOpen(struct gpc_context *c, const struct gp_args_gpPoolOpen *args)
{
	assert_int_equal(args->handle.size, GP_IPC_HANDLE_SIZE);
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpPoolMemoryOpen(struct gpc_context *c, const struct gp_args_gpPoolMemoryOpen *args)
{
	const struct gp_args_gpMemoryMap map = { args->address, args->size, args->device };

	assert_int_equal(args->pool.size, GP_IPC_HANDLE_SIZE);
	assert_int_equal(args->handle.size, GP_IPC_HANDLE_SIZE);
	fake.opens++;
	return gpc_wait_gpMemoryMap(c, &map);
}

CUresult
gpc_post_gpUnshare(struct gpc_context *c, const struct gp_args_gpUnshare *args)
{
	fake.shares--;
	return CUDA_SUCCESS;
}

/* Maps new memory in place of the memory of another process. */
CUresult
gpc_wait_gpMemoryOpen(struct gpc_context *c, const struct gp_args_gpMemoryOpen *args)
{
	const struct gp_args_gpMemoryMap map = { args->address, args->size, args->device };

	assert_int_equal(args->handle.size, GP_IPC_HANDLE_SIZE);
	fake.opens++;
	return gpc_wait_gpMemoryMap(c, &map);
}

CUresult
gpc_wait_gpPhysicalShare(struct gpc_context *c, const struct gp_args_gpPhysicalShare *args,
			 struct gp_reply_gpPhysicalShare *reply, void **raw)
{
	struct gp_ipc_handle *handle = calloc(1, sizeof(*handle));

	assert_non_null(handle);
	memcpy(handle->magic, GP_IPC_MAGIC, sizeof(handle->magic));
	handle->kind = GP_IPC_PHYSICAL;
	handle->device = 1;
	handle->mapping = FAKE_WIRE_GRANULE;
	reply->handle = (struct gp_bytes){ handle, sizeof(*handle) };
	*raw = handle;
	fake.shares++;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpPhysicalOpen(struct gpc_context *c, const struct gp_args_gpPhysicalOpen *args)
{
	const struct gp_args_gpMemoryCreate create = { args->memory, args->size, args->device };

	assert_int_equal(args->handle.size, GP_IPC_HANDLE_SIZE);
	fake.opens++;
	return gpc_wait_gpMemoryCreate(c, &create);
}
