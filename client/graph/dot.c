/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: a graph as text for Graphviz, in the words of NVIDIA's driver. */
#include "client/code/function.h"
#include "client/graph/graph.h"
#include "client/graph/graph_memory.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <utlist.h>

struct dot {
	FILE *file;
	unsigned int flags;
};

static bool
wants(const struct dot *dot, unsigned int flag)
{
	return dot->flags & (CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | flag);
}

static const char *
type_name(CUgraphNodeType type)
{
	switch (type) {
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return "MEMSET";
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return "MEMCPY";
	case CU_GRAPH_NODE_TYPE_HOST:
		return "HOST";
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return "EVENT_WAIT";
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return "EVENT_RECORD";
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return "MEM_ALLOC";
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return "MEM_FREE";
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return "BATCH_MEM_OP";
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return "CONDITIONAL";
	default:
		return "EMPTY";
	}
}

static void
put_kernel(const struct dot *dot, const struct gpc_node_params *params)
{
	const struct gpc_kernel_params *kernel = &params->kernel;
	struct gpc_function *function;
	bool known =
		gpc_function_lookup(params->context, kernel->function, &function) == CUDA_SUCCESS;

	fprintf(dot->file, "%s\n", known ? function->info->name : "KERNEL");
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(dot->file, "grid: %u,%u,%u\nblock: %u,%u,%u\nshared: %u\n", kernel->grid[0],
			kernel->grid[1], kernel->grid[2], kernel->block[0], kernel->block[1],
			kernel->block[2], kernel->shared);
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(dot->file, "func handle: %p\n", (void *)kernel->function);
}

static void
put_copy(const struct dot *dot, const CUDA_MEMCPY3D *copy)
{
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(dot->file, "src: %d %p\ndst: %d %p\nwidth: %zu\nheight: %zu\ndepth: %zu\n",
			(int)copy->srcMemoryType,
			copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost
								  : (void *)copy->srcDevice,
			(int)copy->dstMemoryType,
			copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost
								  : (void *)copy->dstDevice,
			copy->WidthInBytes, copy->Height, copy->Depth);
}

static void
put_fill(const struct dot *dot, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	fprintf(dot->file, "(%u,%zu)\n", fill->value,
		fill->width * fill->elementSize * fill->height);
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(dot->file,
			"dptr: 0x%" PRIx64
			"\npitch: %zu\nelementSize: %u\nwidth: %zu\nheight: %zu\n",
			(uint64_t)fill->dst, fill->pitch, fill->elementSize, fill->width,
			fill->height);
}

static void
put_alloc(const struct dot *dot, const struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock)
{
	CUDA_MEM_ALLOC_NODE_PARAMS told;

	gpc_graph_memory_tell(memory, &told);
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
		fprintf(dot->file, "dptr: 0x%" PRIx64 "\nbytesize: %zu\n", (uint64_t)told.dptr,
			told.bytesize);
}

/* What is said of it besides its type. */
static void
put_params(const struct dot *dot, const struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		put_copy(dot, &params->copy);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		put_fill(dot, &params->fill);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
			fprintf(dot->file, "fn: %p\nuserData: %p\n", (void *)params->host.fn,
				params->host.userData);
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
			fprintf(dot->file, "event: %p\n", (void *)params->event);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		put_alloc(dot, params->memory);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
			fprintf(dot->file, "dptr: 0x%" PRIx64 "\n",
				(uint64_t)gpc_graph_memory_address(params->memory));
		break;
	default:
		break;
	}
}

static void
put_node(const struct dot *dot, unsigned int graph, const struct gpc_node *node, unsigned int child)
	GP_LOCKED(gpc_graphs_lock)
{
	bool kernel = node->params.type == CU_GRAPH_NODE_TYPE_KERNEL;

	fprintf(dot->file, "\"graph_%u_node_%zu\"[style=\"%s\" shape=\"%s\" label=\"%zu\n", graph,
		node->mark, kernel ? "bold" : "solid",
		kernel                                           ? "octagon"
		: node->params.type == CU_GRAPH_NODE_TYPE_MEMSET ? "invtrapezium"
								 : "rectangle",
		node->mark);
	if (kernel)
		put_kernel(dot, &node->params);
	else if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
		fprintf(dot->file, "graph_%u\n", child);
	else
		fprintf(dot->file, "%s\n", type_name(node->params.type));
	put_params(dot, &node->params);
	if (wants(dot, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
		fprintf(dot->file, "node handle: %p\n", node->handle.token);
	fprintf(dot->file, "\"];\n\n");
}

static void
put_edges(const struct dot *dot, unsigned int number, const struct gpc_graph *graph)
{
	const struct gpc_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		for (size_t i = 0; i < node->out.count; i++)
			fprintf(dot->file, "\"graph_%u_node_%zu\" -> \"graph_%u_node_%zu\";\n",
				number, node->mark, number, node->out.list[i].node->mark);
	}
}

/* Graphs are numbered as they are met; *last_p is the last number that was given. */
static void
put_graph(const struct dot *dot, unsigned int number, const struct gpc_graph *graph,
	  unsigned int *last_p) GP_LOCKED(gpc_graphs_lock)
{
	unsigned int child = *last_p;
	struct gpc_node *node;
	size_t count = 0;

	fprintf(dot->file, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n",
		number, number);
	DL_FOREACH(graph->nodes, node)
	{
		node->mark = count++;
		if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			++*last_p;
		put_node(dot, number, node, *last_p);
	}
	put_edges(dot, number, graph);
	fprintf(dot->file, "}\n");
	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			put_graph(dot, ++child, node->params.child, last_p);
	}
}

CUresult
gpc_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct dot dot = { .flags = flags };
	struct gpc_graph *graph;
	unsigned int last = 1;
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
	put_graph(&dot, 1, graph, &last);
	fprintf(dot.file, "}\n\n");
	failed = ferror(dot.file);
	if (fclose(dot.file) != 0 || failed)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	return gpc_graphs_end(result);
}
