/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/graph_memory.h"

#include "client/context/context.h"
#include "client/graph/capture.h"
#include "client/graph/user_object.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct gpc_graph_memory {
	struct gpc_graph_memory *next;
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	struct gpc_context *context;
	uint64_t number; /* of the context: after a reset its memory is gone, or another's */
	unsigned int nodes;
	bool freed;    /* by a node of the application's */
	bool launched; /* at least once */
	bool in_use;
	struct gpc_users_ended end;
};

static struct gpc_graph_memory *memories;
/* The most that there was, of devices by ordinal, since the application reset it. */
static uint64_t used_high[64], reserved_high[64];

static uint64_t
number_of(const struct gpc_context *context)
{
	return gpc_context_is_active(context) && context->legacy ? context->legacy->number : 0;
}

static void
bytes_of(const struct gpc_device *device, uint64_t *used_p, uint64_t *reserved_p)
{
	const struct gpc_graph_memory *memory;

	*used_p = *reserved_p = 0;
	LL_FOREACH(memories, memory)
	{
		if (memory->context->device != device)
			continue;
		*reserved_p += memory->params.bytesize;
		if (memory->launched)
			*used_p += memory->params.bytesize;
	}
}

static void
note_high(const struct gpc_device *device)
{
	uint64_t used, reserved;

	bytes_of(device, &used, &reserved);
	if (used > used_high[device->ordinal % 64])
		used_high[device->ordinal % 64] = used;
	if (reserved > reserved_high[device->ordinal % 64])
		reserved_high[device->ordinal % 64] = reserved;
}

/* Without the lock; work that uses it goes on. */
static void
memory_free(void *data)
{
	struct gpc_graph_memory *memory = data;

	if (memory->number != 0 && number_of(memory->context) == memory->number) {
		gpc_ipc_memory_frees(memory->params.dptr);
		(void)gpc_memory_free(memory->context, memory->params.dptr);
	}
	free(memory);
}

static void
end_if_unused(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock)
{
	if (memory->nodes > 0 || memory->in_use)
		return;
	LL_DELETE(memories, memory);
	__atomic_sub_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
	memory->end = (struct gpc_users_ended){ .destroy = memory_free, .data = memory };
	gpc_users_add_ended(&memory->end);
}

/* Who may use it is of no matter here: all devices of a session see its window. */
static CUresult
check(const CUDA_MEM_ALLOC_NODE_PARAMS *given)
{
	const CUmemPoolProps *props = &given->poolProps;

	if (given->bytesize == 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !gpc_device_get(props->location.id) ||
	    (given->accessDescCount > 0 && !given->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < given->accessDescCount; i++) {
		const CUmemAccessDesc *desc = &given->accessDescs[i];

		if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    !gpc_device_get(desc->location.id))
			return CUDA_ERROR_INVALID_VALUE;
		if (desc->location.id != props->location.id)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	return props->handleTypes == CU_MEM_HANDLE_TYPE_NONE ? CUDA_SUCCESS
							     : CUDA_ERROR_NOT_SUPPORTED;
}

/* The current one, if it is of the device. */
static CUresult
context_for(int ordinal, struct gpc_context **context_p)
{
	CUresult result = gpc_enter(context_p);

	if (result != CUDA_SUCCESS || (*context_p)->device->ordinal == ordinal)
		return result;
	*context_p = gpc_device_get(ordinal)->primary;
	return gpc_context_activate(*context_p);
}

CUresult
gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given, struct gpc_graph_memory **memory_p)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_graph_memory *memory;
	uint64_t address;

	if (result == CUDA_SUCCESS)
		result = given ? check(given) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = context_for(given->poolProps.location.id, &memory->context);
	if (result == CUDA_SUCCESS)
		result = gpc_memory_alloc(memory->context, given->bytesize, &address);
	if (result != CUDA_SUCCESS) {
		free(memory);
		return result;
	}
	memory->params = *given;
	memory->params.dptr = address;
	/* They allow what is allowed anyway. */
	memory->params.accessDescs = NULL;
	memory->params.accessDescCount = 0;
	memory->number = number_of(memory->context);
	memory->nodes = 1;
	pthread_mutex_lock(&gpc_graphs_lock);
	LL_PREPEND(memories, memory);
	__atomic_add_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
	note_high(memory->context->device);
	pthread_mutex_unlock(&gpc_graphs_lock);
	*memory_p = memory;
	return CUDA_SUCCESS;
}

struct gpc_graph_memory *
gpc_graph_memory_hold(struct gpc_graph_memory *memory)
{
	memory->nodes++;
	return memory;
}

void
gpc_graph_memory_drop(struct gpc_graph_memory *memory)
{
	memory->nodes--;
	end_if_unused(memory);
}

struct gpc_graph_memory *
gpc_graph_memory_find(CUdeviceptr address)
{
	struct gpc_graph_memory *memory;

	LL_FOREACH(memories, memory)
	{
		if (memory->params.dptr == address && number_of(memory->context) == memory->number)
			return memory;
	}
	return NULL;
}

CUdeviceptr
gpc_graph_memory_address(const struct gpc_graph_memory *memory)
{
	return memory->params.dptr;
}

void
gpc_graph_memory_tell(const struct gpc_graph_memory *memory, CUDA_MEM_ALLOC_NODE_PARAMS *told)
{
	*told = memory->params;
}

bool
gpc_graph_memory_is_freed(const struct gpc_graph_memory *memory)
{
	return memory->freed;
}

void
gpc_graph_memory_set_freed(struct gpc_graph_memory *memory, bool freed)
{
	memory->freed = freed;
}

static bool
allocates(const struct gpc_graph *graph, const struct gpc_graph_memory *memory)
{
	const struct gpc_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		    node->params.memory == memory)
			return true;
	}
	return false;
}

static CUresult
check_launch(const struct gpc_graph *graph, bool auto_free)
{
	const struct gpc_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		const struct gpc_graph_memory *memory = node->params.memory;

		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && memory->in_use &&
		    !auto_free)
			return CUDA_ERROR_INVALID_VALUE;
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE && !memory->in_use &&
		    !allocates(graph, memory))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
{
	CUresult result = check_launch(graph, auto_free);
	const struct gpc_node *node;

	if (result != CUDA_SUCCESS)
		return result;
	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			continue;
		node->params.memory->launched = node->params.memory->in_use = true;
		note_high(node->params.memory->context->device);
	}
	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			node->params.memory->in_use = false;
	}
	return CUDA_SUCCESS;
}

/* Memory of a graph is freed by the application; other memory is the call's own business. */
static CUresult
free_of_graph(CUdeviceptr address)
{
	struct gpc_graph_memory *memory;
	CUresult result = gpc_graphs_begin();

	memory = result == CUDA_SUCCESS ? gpc_graph_memory_find(address) : NULL;
	if (!memory)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	if (!memory->in_use)
		return gpc_graphs_end(CUDA_ERROR_INVALID_VALUE);
	memory->in_use = false;
	end_if_unused(memory);
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_capture_cuMemFree_v2(CUdeviceptr dptr)
{
	return free_of_graph(dptr);
}

CUresult
gpc_capture_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	CUresult result = gpc_capture_add_free(dptr, hStream);

	return result == GPC_NOT_CAPTURED ? free_of_graph(dptr) : result;
}

static CUresult
begin_device(CUdevice dev, struct gpc_device **device_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin();

	*device_p = gpc_device_get(dev);
	return result == CUDA_SUCCESS && !*device_p ? CUDA_ERROR_INVALID_DEVICE : result;
}

/* Nothing is kept that no graph has. */
CUresult
gpc_cuDeviceGraphMemTrim(CUdevice device)
{
	struct gpc_device *found;

	return gpc_graphs_end(begin_device(device, &found));
}

CUresult
gpc_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	cuuint64_t used, reserved, *told = value;
	struct gpc_device *found;
	CUresult result = begin_device(device, &found);

	if (result == CUDA_SUCCESS &&
	    (!value || (unsigned int)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	bytes_of(found, &used, &reserved);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
		*told = used;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
		*told = reserved;
	else
		*told = (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ? used_high
								 : reserved_high)[device % 64];
	return gpc_graphs_end(CUDA_SUCCESS);
}

/* The highest marks alone can be set, and to zero alone: to what there is now. */
CUresult
gpc_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	const cuuint64_t *wanted = value;
	cuuint64_t used, reserved;
	struct gpc_device *found;
	CUresult result = begin_device(device, &found);

	if (result == CUDA_SUCCESS && (!value || *wanted != 0 ||
				       (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
					attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	bytes_of(found, &used, &reserved);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		used_high[device % 64] = used;
	else
		reserved_high[device % 64] = reserved;
	return gpc_graphs_end(CUDA_SUCCESS);
}
