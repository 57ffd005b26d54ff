/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a graph node: validated copies of the application's parameters, including the data
 * that they point to.
 *
 * Ownership: plain data, owned by the node or other holder and freed with gpc_node_params_free().
 * Threads: functions with GP_LOCKED are called with gpc_graphs_lock held.
 */
#ifndef GPC_NODE_PARAMS_H
#define GPC_NODE_PARAMS_H

#include "client/graph/graph_root.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_graph_memory;
struct gpc_mem_ops;
struct gpc_node;

/* Parameters of a kernel node. */
struct gpc_kernel_params {
	CUfunction function; /* func, or kern as a CUfunction */
	CUfunction func;     /* both as passed by the application */
	CUkernel kern;
	unsigned int grid[3], block[3], shared;
	void *packed; /* kernel parameters in the layout of the kernel */
	size_t packed_size;
	void **values; /* addresses of the parameters in `packed` */
	/* Copy of `values` for the application, which may modify it and pass it back. */
	void **user_params;
	unsigned int value_count;
	CUlaunchAttribute *attributes;
	unsigned int attribute_count;
	uint64_t updatable; /* device handle of a device-updatable node; 0: not updatable */
	struct gpc_graph_root *root; /* its root, a reference */
};

/* Parameters of a node; `type` selects the member of the union. */
struct gpc_node_params {
	CUgraphNodeType type;
	struct gpc_context *context; /* context of the operation, if it runs in one */
	union {
		struct gpc_kernel_params kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		CUevent event;
		struct gpc_graph *child;
		struct gpc_graph_memory *memory; /* of an allocation or free node: a reference */
		struct gpc_mem_ops *ops;         /* a reference */
		struct gpc_condition condition;
	};
};

/*
 * Parses and validates the application's parameters, as CUDA does when a node is added. A NULL
 * context in them means `usual` or, if that is NULL, the current context. Nothing needs to be freed
 * on failure; CUDA_ERROR_NOT_SUPPORTED: the type is not supported.
 */
CUresult gpc_node_params_parse(const CUgraphNodeParams *given, struct gpc_context *usual,
			       struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);

/* Convert the parameters of type-specific functions for gpc_node_params_parse(). Return any, or
 * NULL if the given pointer is NULL. */
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

/* Sets or replaces a launch attribute of a kernel node. Returns CUDA_ERROR_NOT_SUPPORTED for an
 * attribute that graph nodes cannot have. */
CUresult gpc_kernel_params_set_attribute(struct gpc_node_params *params, CUlaunchAttributeID id,
					 const CUlaunchAttributeValue *value);

/* Returns the graphs that the node owns: a child graph, or the bodies of a condition. */
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

/* Returns whether the node allocates or frees memory. */
static inline bool
gpc_node_params_is_memory(const struct gpc_node_params *params)
{
	return params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	       params->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

/* Copies parameters; the copy owns the data that it points to. */
CUresult gpc_node_params_dup(const struct gpc_node_params *params, struct gpc_node_params *copy)
	GP_LOCKED(gpc_graphs_lock);
void gpc_node_params_free(struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);
/* Replaces a node's parameters by others of the same type, and frees the old ones. Takes ownership
 * of *now. */
void gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now)
	GP_LOCKED(gpc_graphs_lock);

/* Returns the parameters for the application; the pointers are valid as long as the node's
 * parameters. */
CUDA_KERNEL_NODE_PARAMS gpc_node_get_kernel_params(const struct gpc_node *node);
/* Returns the members that the first version of the structure has. */
CUDA_KERNEL_NODE_PARAMS_v1 gpc_node_get_kernel_params_v1(const struct gpc_node *node);

#endif /* GPC_NODE_PARAMS_H */
