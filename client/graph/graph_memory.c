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

/* Maximum number of preceding nodes that are searched for memory to reuse. */
#define SEARCH_MAX 1024

/* Memory at an address, shared by allocations of a graph each of which is freed before the next. */
struct block {
	struct block *next;
	uint64_t address, size; /* 0: memory was exhausted */
	struct gpc_context *context;
	uint64_t number; /* number of the context, to detect a reset, after which the memory is gone
			  */
	unsigned int memories;
	const struct gpc_graph_memory
		*last; /* last allocation that uses it, if that still exists */
	bool launched; /* launched at least once */
	struct gpc_user_destructor end;
};

struct gpc_graph_memory {
	struct gpc_graph_memory *next;
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	struct block *block;
	CUgraph graph; /* token of the node's graph, once the node is added */
	unsigned int nodes;
	bool freed; /* by a node that the application added */
	bool in_use;
};

static struct gpc_graph_memory *memories;
static struct block *blocks;
/* High-water marks of the devices, by ordinal, since the application reset them. */
static uint64_t used_high[64], reserved_high[64];

static uint64_t
context_get_number(const struct gpc_context *context)
{
	return gpc_context_is_active(context) && context->legacy ? context->legacy->number : 0;
}

static void
device_get_bytes(const struct gpc_device *device, uint64_t *used_p, uint64_t *reserved_p)
{
	const struct block *block;

	*used_p = *reserved_p = 0;
	LL_FOREACH(blocks, block)
	{
		if (block->context->device != device)
			continue;
		*reserved_p += block->size;
		if (block->launched)
			*used_p += block->size;
	}
}

static void
device_note_high_water(const struct gpc_device *device)
{
	uint64_t used, reserved;

	device_get_bytes(device, &used, &reserved);
	if (used > used_high[device->ordinal % 64])
		used_high[device->ordinal % 64] = used;
	if (reserved > reserved_high[device->ordinal % 64])
		reserved_high[device->ordinal % 64] = reserved;
}

static bool
block_is_valid(const struct block *block)
{
	return block->number != 0 && context_get_number(block->context) == block->number;
}

/* Called without the lock; work that uses the memory continues. */
static void
block_free(void *data)
{
	struct block *block = data;

	if (block->address && block_is_valid(block)) {
		gpc_ipc_memory_withdraw(block->address);
		(void)gpc_memory_free(block->context, block->address);
	}
	free(block);
}

static void
block_unref(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock)
{
	struct block *block = memory->block;

	if (block->last == memory)
		block->last = NULL;
	if (--block->memories > 0)
		return;
	LL_DELETE(blocks, block);
	block->end = (struct gpc_user_destructor){ .destroy = block_free, .data = block };
	gpc_user_destructors_add(&block->end);
}

static void
memory_free_if_unused(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock)
{
	if (memory->nodes > 0 || memory->in_use)
		return;
	LL_DELETE(memories, memory);
	__atomic_sub_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
	block_unref(memory);
	free(memory);
}

/* Access can be requested only for the memory's own device, which always has it. */
static CUresult
alloc_params_check(const CUDA_MEM_ALLOC_NODE_PARAMS *given)
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

/* Returns the current context, if it belongs to the device; otherwise the primary context. */
static CUresult
device_get_context(int ordinal, struct gpc_context **context_p)
{
	CUresult result = gpc_enter(context_p);

	if (result != CUDA_SUCCESS || (*context_p)->device->ordinal == ordinal)
		return result;
	*context_p = gpc_device_get(ordinal)->primary;
	return gpc_context_activate(*context_p);
}

/* Succeeds without memory if that is exhausted, because the block of a preceding free node may be
 * used instead. */
static CUresult
block_create(int ordinal, uint64_t size, struct block **block_p)
{
	struct block *block = calloc(1, sizeof(*block));
	CUresult result =
		block ? device_get_context(ordinal, &block->context) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS) {
		result = gpc_memory_alloc(block->context, size, &block->address);
		block->number = context_get_number(block->context);
		block->size = size;
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY && block && block->number) {
		block->address = block->size = 0;
		result = CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS)
		*block_p = block;
	else
		free(block);
	return result;
}

CUresult
gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given, struct gpc_graph_memory **memory_p)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_graph_memory *memory;

	if (result == CUDA_SUCCESS)
		result = given ? alloc_params_check(given) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = block_create(given->poolProps.location.id, given->bytesize, &memory->block);
	if (result != CUDA_SUCCESS) {
		free(memory);
		return result;
	}
	memory->params = *given;
	memory->params.dptr = memory->block->address;
	/* The memory's own device has access anyway. */
	memory->params.accessDescs = NULL;
	memory->params.accessDescCount = 0;
	memory->nodes = 1;
	memory->block->memories = 1;
	memory->block->last = memory;
	pthread_mutex_lock(&gpc_graphs_lock);
	LL_PREPEND(memories, memory);
	LL_PREPEND(blocks, memory->block);
	__atomic_add_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&gpc_graphs_lock);
	*memory_p = memory;
	return CUDA_SUCCESS;
}

/* Returns whether the memory that the node frees can be reused, and fits better than `best`. */
static bool
freed_block_is_better(const struct gpc_node *node, const struct gpc_graph_memory *memory,
		      const struct block *best)
{
	const struct gpc_graph_memory *freed = node->params.memory;
	const struct block *block = freed->block;

	return block->last == freed && freed->graph == node->graph->handle.token &&
	       block->context == memory->block->context && block->number == memory->block->number &&
	       block_is_valid(block) && block->size >= memory->params.bytesize &&
	       (!best || block->size < best->size);
}

/* Searches the predecessors of a node, nearest first. */
static struct block *
freed_block_find(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock)
{
	/* Marks count down from SIZE_MAX, as sorting uses values from 0 up. */
	static size_t mark = SIZE_MAX;
	const struct gpc_node *list[SEARCH_MAX] = { node };
	struct block *best = NULL;
	size_t count = 1;

	mark--;
	for (size_t at = 0; at < count; at++) {
		const struct gpc_node *from = list[at];

		if (from->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
		    freed_block_is_better(from, node->params.memory, best))
			best = from->params.memory->block;
		for (size_t i = 0; i < from->in.count && count < SEARCH_MAX; i++) {
			struct gpc_node *before = from->in.list[i].node;

			if (before->mark != mark)
				list[count++] = before;
			before->mark = mark;
		}
	}
	return best;
}

CUresult
gpc_graph_memory_place(const struct gpc_node *node)
{
	struct gpc_graph_memory *memory = node->params.memory;
	struct block *block;

	/* A clone shares the memory of the original node. */
	if (memory->graph)
		return CUDA_SUCCESS;
	memory->graph = node->graph->handle.token;
	block = freed_block_find(node);
	if (block) {
		block_unref(memory);
		block->memories++;
		block->last = memory;
		memory->block = block;
		memory->params.dptr = block->address;
	}
	device_note_high_water(memory->block->context->device);
	return memory->block->address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

struct gpc_graph_memory *
gpc_graph_memory_ref(struct gpc_graph_memory *memory)
{
	memory->nodes++;
	return memory;
}

void
gpc_graph_memory_unref(struct gpc_graph_memory *memory)
{
	memory->nodes--;
	memory_free_if_unused(memory);
}

struct gpc_graph_memory *
gpc_graph_memory_find(CUdeviceptr address)
{
	struct gpc_graph_memory *memory, *last = NULL;

	LL_FOREACH(memories, memory)
	{
		if (memory->block->address != address || !block_is_valid(memory->block))
			continue;
		if (memory->in_use)
			return memory;
		if (memory->block->last == memory)
			last = memory;
	}
	return last;
}

CUdeviceptr
gpc_graph_memory_address(const struct gpc_graph_memory *memory)
{
	return memory->params.dptr;
}

CUdeviceptr
gpc_node_get_memory_address(const struct gpc_node *node)
{
	return gpc_graph_memory_address(node->params.memory);
}

CUDA_MEM_ALLOC_NODE_PARAMS
gpc_node_get_alloc_params(const struct gpc_node *node)
{
	return node->params.memory->params;
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
graph_allocates(const struct gpc_graph *graph, const struct gpc_graph_memory *memory)
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
graph_check_launch(const struct gpc_graph *graph, bool auto_free)
{
	const struct gpc_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		const struct gpc_graph_memory *memory = node->params.memory;

		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && memory->in_use &&
		    !auto_free)
			return CUDA_ERROR_INVALID_VALUE;
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE && !memory->in_use &&
		    !graph_allocates(graph, memory))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
{
	CUresult result = graph_check_launch(graph, auto_free);
	const struct gpc_node *node;

	if (result != CUDA_SUCCESS)
		return result;
	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			continue;
		node->params.memory->block->launched = node->params.memory->in_use = true;
		device_note_high_water(node->params.memory->block->context->device);
	}
	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			node->params.memory->in_use = false;
	}
	return CUDA_SUCCESS;
}

/* The application frees memory of a graph; other memory is handled by the call itself. */
static CUresult
memory_free_address(CUdeviceptr address)
{
	struct gpc_graph_memory *memory;
	CUresult result = gpc_graphs_begin();

	memory = result == CUDA_SUCCESS ? gpc_graph_memory_find(address) : NULL;
	if (!memory)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	if (!memory->in_use)
		return gpc_graphs_end(CUDA_ERROR_INVALID_VALUE);
	memory->in_use = false;
	memory_free_if_unused(memory);
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_capture_cuMemFree_v2(CUdeviceptr dptr)
{
	return memory_free_address(dptr);
}

CUresult
gpc_capture_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	CUresult result = gpc_capture_add_free(dptr, hStream);

	return result == GPC_NOT_CAPTURED ? memory_free_address(dptr) : result;
}

static CUresult
graphs_begin_device(CUdevice dev, struct gpc_device **device_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin();

	*device_p = gpc_device_get(dev);
	return result == CUDA_SUCCESS && !*device_p ? CUDA_ERROR_INVALID_DEVICE : result;
}

/* Memory that no graph uses is freed at once, so there is nothing to trim. */
CUresult
gpc_cuDeviceGraphMemTrim(CUdevice device)
{
	struct gpc_device *found;

	return gpc_graphs_end(graphs_begin_device(device, &found));
}

CUresult
gpc_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	cuuint64_t used, reserved, *out = value;
	struct gpc_device *found;
	CUresult result = graphs_begin_device(device, &found);

	if (result == CUDA_SUCCESS &&
	    (!value || (unsigned int)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	device_get_bytes(found, &used, &reserved);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
		*out = used;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
		*out = reserved;
	else
		*out = (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ? used_high
								: reserved_high)[device % 64];
	return gpc_graphs_end(CUDA_SUCCESS);
}

/* Only the high-water marks can be set, and only to zero, which resets them to the present
 * value. */
CUresult
gpc_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	const cuuint64_t *wanted = value;
	cuuint64_t used, reserved;
	struct gpc_device *found;
	CUresult result = graphs_begin_device(device, &found);

	if (result == CUDA_SUCCESS && (!value || *wanted != 0 ||
				       (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
					attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	device_get_bytes(found, &used, &reserved);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		used_high[device % 64] = used;
	else
		reserved_high[device % 64] = reserved;
	return gpc_graphs_end(CUDA_SUCCESS);
}
