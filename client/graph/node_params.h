/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node of a graph does, as the application said it, checked, and with copies of what it
 * points to.  Plain data that its holder owns.
 */
#ifndef GPC_NODE_PARAMS_H
#define GPC_NODE_PARAMS_H

#include "client/graph/condition.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_context;
struct gpc_graph;
struct gpc_graph_memory;
struct gpc_mem_ops;

struct gpc_kernel_params {
	CUfunction function; /* as it was given, or the CUkernel */
	CUfunction func;     /* both as they were given */
	CUkernel kern;
	unsigned int grid[3], block[3], shared;
	void *packed; /* the parameters as the kernel gets them */
	size_t packed_size;
	void **values; /* where each is in them */
	/* The same for the application, which may write other pointers there and give it back. */
	void **user_params;
	unsigned int value_count;
	CUlaunchAttribute *attributes;
	unsigned int attribute_count;
	uint64_t updatable;          /* what kernels that change it call it; 0: none does */
	struct gpc_graph_root *root; /* whose it then is: a reference */
};

struct gpc_node_params {
	CUgraphNodeType type;
	struct gpc_context *context; /* of what runs in one */
	union {
		struct gpc_kernel_params kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		CUevent event;
		struct gpc_graph *child;
		struct gpc_graph_memory *memory; /* of who allocates or frees it: a reference */
		struct gpc_mem_ops *ops;         /* a reference */
		struct gpc_condition condition;
	};
};

/*
 * Makes parameters of what the application gives, and checks it as CUDA does when a node is added.
 * Where it fails there is nothing to be freed; CUDA_ERROR_NOT_SUPPORTED: a type that is not known
 * here.  A context that is NULL is `usual`, or the
 * current one where that is NULL, too.
 */
CUresult gpc_node_params_parse(const CUgraphNodeParams *given, struct gpc_context *usual,
			       struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);

/* What the functions for one type of node are given, as gpc_node_params_parse() takes it: any, or
 * NULL where nothing is given. */
CUgraphNodeParams *gpc_generic_params_kernel(CUgraphNodeParams *any,
					     const CUDA_KERNEL_NODE_PARAMS *given);
CUgraphNodeParams *gpc_generic_params_kernel_v1(CUgraphNodeParams *any,
						const CUDA_KERNEL_NODE_PARAMS_v1 *given);
CUgraphNodeParams *gpc_generic_params_copy(CUgraphNodeParams *any, const CUDA_MEMCPY3D *given,
					   CUcontext ctx);
CUgraphNodeParams *gpc_generic_params_memset(CUgraphNodeParams *any,
					     const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx);
CUgraphNodeParams *gpc_generic_params_host(CUgraphNodeParams *any,
					   const CUDA_HOST_NODE_PARAMS *given);
CUgraphNodeParams *gpc_generic_params_mem_ops(CUgraphNodeParams *any,
					      const CUDA_BATCH_MEM_OP_NODE_PARAMS *given);
CUgraphNodeParams *gpc_generic_params_event(CUgraphNodeParams *any, CUgraphNodeType type,
					    CUevent event);

/* Sets or replaces one attribute of a kernel's launches.  CUDA_ERROR_NOT_SUPPORTED: one that a
 * node of a graph cannot have. */
CUresult gpc_kernel_params_set_attribute(struct gpc_node_params *params, CUlaunchAttributeID id,
					 const CUlaunchAttributeValue *value);

/* The graphs that the node owns: a child, or the bodies of a condition. */
static inline struct gpc_graph *const *
gpc_node_params_graphs(const struct gpc_node_params *params, size_t *count_p)
{
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		*count_p = params->condition.size;
		return params->condition.bodies;
	}
	*count_p = params->type == CU_GRAPH_NODE_TYPE_GRAPH;
	return &params->child;
}

/* Whether the node allocates or frees memory. */
static inline bool
gpc_node_params_is_memory(const struct gpc_node_params *params)
{
	return params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	       params->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

/* A copy that owns what it points to. */
CUresult gpc_node_params_dup(const struct gpc_node_params *params, struct gpc_node_params *copy)
	GP_LOCKED(gpc_graphs_lock);
void gpc_node_params_free(struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);
/* Gives a node others of the same type, and frees what it had. */
void gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now)
	GP_LOCKED(gpc_graphs_lock);

/* As the application gets to see it. */
void gpc_kernel_params_get(const struct gpc_node_params *params,
			   CUDA_KERNEL_NODE_PARAMS *user_params);

#endif /* GPC_NODE_PARAMS_H */
