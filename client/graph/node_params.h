/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a graph node: validated copies of the application's parameters, including the data
 * that they point to.
 *
 * Ownership: a struct gpc_node_params owns the memory and the references in it, until
 * gpc_node_params_free() or until a function takes them over. It may be moved by assignment.
 * Threads: functions with GP_LOCKED are called with gpc_graphs_lock held; so are the others if the
 * parameters belong to a node.
 * Errors: functions that return a CUresult return CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_OUT_OF_MEMORY, or the errors stated with the function.
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
	CUfunction function; /* the function to launch: func or, if that is NULL, kern */
	CUfunction func;     /* func as the application passed it; NULL: it passed kern */
	/* kern as the application passed it; NULL: it passed func */
	CUkernel kern;
	/* grid: in blocks; block: in threads; each x, y, z. shared: bytes of dynamic shared
	 * memory. */
	unsigned int grid[3], block[3], shared;
	/* kernel parameters in the layout of the kernel, of packed_size bytes */
	void *packed;
	size_t packed_size;
	/* addresses of the value_count parameters in `packed` */
	void **values;
	/* array for the application (kernelParams), which may modify it and pass it back; filled
	 * from `values` by gpc_node_get_kernel_params() */
	void **user_params;
	unsigned int value_count;
	/* attribute_count launch attributes */
	CUlaunchAttribute *attributes;
	unsigned int attribute_count;
	/* device handle of a device-updatable node, which device code can change; 0: not
	 * device-updatable */
	uint64_t updatable;
	/* root (graph_root.h) in which a device-updatable node exists, a reference; NULL: not
	 * device-updatable */
	struct gpc_graph_root *root;
};

/* Parameters of a node; `type` selects the member of the union. */
struct gpc_node_params {
	CUgraphNodeType type;
	/* context in which the node runs, or in which it was captured; NULL: the node needs none */
	struct gpc_context *context;
	union {
		struct gpc_kernel_params kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		CUevent event;
		struct gpc_graph *child; /* owned */
		struct gpc_graph_memory
			*memory; /* of an allocation or free node: a reference (graph_memory.h) */
		struct gpc_mem_ops
			*ops; /* of a memory operation node: a reference (stream_ops/mem_op.h) */
		struct gpc_condition condition;
	};
};

/*
 * Creates a node's parameters from the application's, which it checks as CUDA does when a node is
 * added. The application's memory is not used after the return. A child graph is cloned; a
 * conditional node gets empty bodies. May wait for the daemon, with gpc_graphs_lock held: to
 * activate the current context, and to make pinned memory that a kernel node's parameters point to
 * accessible to kernels (client/memory/host_memory.h). On success the caller owns *params; on
 * failure nothing needs to be freed, and *params must not be used.
 * usual: context of the node if the application passes none. NULL: kernels, copies, memsets and
 * conditional nodes use the current context; for memory operations this is
 * CUDA_ERROR_INVALID_VALUE.
 * Errors: CUDA_ERROR_NOT_SUPPORTED for semaphore nodes, for memory nodes (graph_memory.h creates
 * those), and for a child graph that must not be copied. CUDA_ERROR_INVALID_HANDLE for a kernel
 * node without a kernel. CUDA_ERROR_INVALID_IMAGE for a kernel that the image's code does not
 * contain. Otherwise the errors of looking up contexts and kernels, and of checking a launch, a
 * copy or memory operations.
 */
CUresult gpc_node_params_parse(const CUgraphNodeParams *given, struct gpc_context *usual,
			       struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);

/* The gpc_generic_params_*() functions convert the parameters of one node type
 * (cuGraphAddKernelNode() and others) to *any, for gpc_node_params_parse(). Each returns `any`, or
 * NULL if `given` is NULL, which gpc_node_params_parse() rejects. The copy is shallow: memory that
 * *given points to must stay valid while *any is used. */
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
CUgraphNodeParams *gpc_generic_params_event(CUgraphNodeParams *any, CUevent event,
					    CUgraphNodeType type);
CUgraphNodeParams *gpc_generic_params_child(CUgraphNodeParams *any, CUgraph child);
CUgraphNodeParams *gpc_generic_params_free(CUgraphNodeParams *any, CUdeviceptr address);

/* Sets or replaces a launch attribute of a kernel node, whose context is set. Returns
 * CUDA_ERROR_NOT_SUPPORTED for an attribute that gpupool does not support in graphs, and
 * CUDA_ERROR_INVALID_VALUE for an access policy window that the device does not accept. On failure
 * the parameters are unchanged. */
CUresult gpc_kernel_params_set_attribute(struct gpc_node_params *params, CUlaunchAttributeID id,
					 const CUlaunchAttributeValue *value);

/* Returns an array of *count_p graphs that the node owns: its child graph, or the bodies of its
 * condition. It is valid as long as the parameters. For other nodes *count_p is 0, and the result
 * must not be used. */
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

/* Copies parameters; the copy owns copies of the data that it points to, except that memory, memory
 * operations and roots are shared by reference. On failure nothing needs to be freed, and *copy
 * must not be used. */
CUresult gpc_node_params_dup(const struct gpc_node_params *params, struct gpc_node_params *copy)
	GP_LOCKED(gpc_graphs_lock);
/* Frees the data that the parameters point to, releases their references, and destroys the graphs
 * that they own. *params must not be used afterwards. */
void gpc_node_params_free(struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock);
/* Replaces a node's parameters by *now, which has the same type and takes its place: ownership
 * passes to *params, and the old parameters are freed. A kernel node stays device-updatable if it
 * was, and keeps its launch attributes if *now has none. Not for conditional nodes. */
void gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now)
	GP_LOCKED(gpc_graphs_lock);

/* Returns the parameters of a kernel node, for the application. The pointers in them are valid
 * until the node is destroyed; replacing its parameters may invalidate them too. */
CUDA_KERNEL_NODE_PARAMS gpc_node_get_kernel_params(const struct gpc_node *node);
/* The same in the first version of the structure, which lacks kern and ctx. */
CUDA_KERNEL_NODE_PARAMS_v1 gpc_node_get_kernel_params_v1(const struct gpc_node *node);
/* Returns a launch attribute of a kernel node; zero if it was never set. */
CUkernelNodeAttrValue gpc_node_get_kernel_attribute(const struct gpc_node *node,
						    CUkernelNodeAttrID attr);

#endif /* GPC_NODE_PARAMS_H */
