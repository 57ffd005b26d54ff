/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGraphDebugDotPrint(): writes a graph as a DOT file.
 *
 * Each graph is a cluster, including graphs that nodes own. A node is printed with its number, its
 * type, the name of its kernel or the direction of its copy, and the properties that
 * CUgraphDebugDot_flags request. Kernel attributes and edge data are not printed.
 */
#include "client/graph/graph.h"
#include "client/graph/graph_memory.h"
#include "client/module/function.h"
#include "client/stream_ops/mem_op.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

#include <stdint.h>
#include <stdio.h>
#include <utlist.h>

#define FLAG(name) CU_GRAPH_DEBUG_DOT_FLAGS_##name

struct dot {
	FILE *file;
	unsigned int flags;
	unsigned int last; /* number of the last numbered graph */
};

static const struct {
	const char *name;
	unsigned int flag; /* flag that requests the node's parameters */
} node_types[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = { "KERNEL", FLAG(KERNEL_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_MEMCPY] = { "MEMCPY", FLAG(MEMCPY_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_MEMSET] = { "MEMSET", FLAG(MEMSET_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_HOST] = { "HOST", FLAG(HOST_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_GRAPH] = { "GRAPH", 0 },
	[CU_GRAPH_NODE_TYPE_EMPTY] = { "EMPTY", 0 },
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = { "EVENT_WAIT", FLAG(EVENT_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = { "EVENT_RECORD", FLAG(EVENT_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = { "MEM_ALLOC", FLAG(MEM_ALLOC_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = { "MEM_FREE", FLAG(MEM_FREE_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = { "BATCH_MEM_OP", FLAG(BATCH_MEM_OP_NODE_PARAMS) },
	[CU_GRAPH_NODE_TYPE_CONDITIONAL] = { "CONDITIONAL", FLAG(CONDITIONAL_NODE_PARAMS) },
};

/* Returns the array's handle, or the address. */
static const void *
memory_location(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return array;
	return type == CU_MEMORYTYPE_HOST ? host : (const void *)(uintptr_t)device;
}

static void
params_write(FILE *file, const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node_params *params = &node->params;
	const struct gpc_kernel_params *kernel = &params->kernel;
	const CUDA_MEMCPY3D *copy = &params->copy;
	CUDA_MEM_ALLOC_NODE_PARAMS memory;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		fprintf(file, "grid: %u,%u,%u\nblock: %u,%u,%u\nshared: %u\n", kernel->grid[0],
			kernel->grid[1], kernel->grid[2], kernel->block[0], kernel->block[1],
			kernel->block[2], kernel->shared);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		fprintf(file, "src: %p\ndst: %p\nwidth: %zu\nheight: %zu\ndepth: %zu\n",
			memory_location(copy->srcMemoryType, copy->srcHost, copy->srcDevice,
					copy->srcArray),
			memory_location(copy->dstMemoryType, copy->dstHost, copy->dstDevice,
					copy->dstArray),
			copy->WidthInBytes, copy->Height, copy->Depth);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fprintf(file,
			"dptr: 0x%llx\nvalue: %u\npitch: %zu\nelementSize: %u\nwidth: %zu\n"
			"height: %zu\n",
			params->fill.dst, params->fill.value, params->fill.pitch,
			params->fill.elementSize, params->fill.width, params->fill.height);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		fprintf(file, "fn: %p\nuserData: %p\n", (void *)params->host.fn,
			params->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		fprintf(file, "event: %p\n", (void *)params->event);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		memory = gpc_node_get_alloc_params(node);
		fprintf(file, "dptr: 0x%llx\nbytesize: %zu\n", memory.dptr, memory.bytesize);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		fprintf(file, "count: %u\n", params->ops->given.count);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		fprintf(file, "handle: 0x%llx\ntype: %d\n",
			(unsigned long long)params->condition.handle, (int)params->condition.type);
		break;
	default:
		break;
	}
}

/* Also assigns numbers to the graphs that the node owns. */
static void
node_write(struct dot *dot, unsigned int graph, const struct gpc_node *node)
	GP_LOCKED(gpc_graphs_lock)
{
	static const char memory[] = { [CU_MEMORYTYPE_HOST] = 'H',
				       [CU_MEMORYTYPE_DEVICE] = 'D',
				       [CU_MEMORYTYPE_ARRAY] = 'A',
				       [CU_MEMORYTYPE_UNIFIED] = 'U' };
	const struct gpc_node_params *params = &node->params;
	struct gpc_function *function;
	size_t owned;

	fprintf(dot->file, "\"graph_%u_node_%zu\"[label=\"%zu\n%s\n", graph, node->mark, node->mark,
		node_types[params->type].name);
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    gpc_function_lookup(NULL, params->kernel.function, &function) == CUDA_SUCCESS)
		fprintf(dot->file, "%s\n", function->info->name);
	if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		fprintf(dot->file, "%cto%c\n", memory[params->copy.srcMemoryType],
			memory[params->copy.dstMemoryType]);
	(void)gpc_node_params_graphs(params, &owned);
	for (size_t i = 0; i < owned; i++)
		fprintf(dot->file, "graph_%u\n", ++dot->last);
	if (dot->flags & node_types[params->type].flag)
		params_write(dot->file, node);
	if (dot->flags & FLAG(HANDLES)) {
		fprintf(dot->file, "node handle: %p\n", node->handle.token);
		if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
			fprintf(dot->file, "func handle: %p\n", (void *)params->kernel.function);
	}
	fprintf(dot->file, "\"];\n");
}

/* Writes the graph, followed by the graphs that its nodes own. */
static void
graph_write(struct dot *dot, unsigned int number, const struct gpc_graph *graph)
	GP_LOCKED(gpc_graphs_lock)
{
	unsigned int next = dot->last;
	struct gpc_graph *const *owned;
	struct gpc_node *node;
	size_t count = 0;

	fprintf(dot->file, "subgraph cluster_%u {\nlabel=\"graph_%u\";\n", number, number);
	DL_FOREACH(graph->nodes, node)
	{
		node->mark = count++;
		node_write(dot, number, node);
	}
	DL_FOREACH(graph->nodes, node)
	{
		for (size_t i = 0; i < node->out.count; i++)
			fprintf(dot->file, "\"graph_%u_node_%zu\" -> \"graph_%u_node_%zu\";\n",
				number, node->mark, number, node->out.list[i].node->mark);
	}
	fprintf(dot->file, "}\n");
	DL_FOREACH(graph->nodes, node)
	{
		owned = gpc_node_params_graphs(&node->params, &count);
		for (size_t i = 0; i < count; i++)
			graph_write(dot, ++next, owned[i]);
	}
}

CUresult
gpc_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct dot dot = { .flags = flags & FLAG(VERBOSE) ? ~0U : flags, .last = 1 };
	struct gpc_graph *graph;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);
	bool failed;

	if (result == CUDA_SUCCESS && !path)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	dot.file = fopen(path, "we");
	if (!dot.file)
		return gpc_graphs_end(CUDA_ERROR_OPERATING_SYSTEM);
	fprintf(dot.file, "digraph dot {\n");
	graph_write(&dot, 1, graph);
	fprintf(dot.file, "}\n");
	failed = ferror(dot.file);
	if (fclose(dot.file) != 0 || failed)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	return gpc_graphs_end(result);
}
