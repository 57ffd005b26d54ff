/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node of a graph does, as the application said it, checked, and with copies of what it
 * points to.  Plain data that its holder owns; under gpc_graphs_lock.
 */
#ifndef GPC_NODE_PARAMS_H
#define GPC_NODE_PARAMS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_context;
struct gpc_graph;

struct gpc_kernel_params {
	CUfunction function; /* as it was given, or the CUkernel */
	CUfunction func;     /* both as they were given */
	CUkernel kern;
	unsigned int grid[3], block[3], shared;
	void *packed; /* the parameters as the kernel gets them */
	size_t packed_size;
	void **values; /* where each is in them */
	unsigned int value_count;
	CUlaunchAttribute *attributes;
	unsigned int attribute_count;
};

struct gpc_node_params {
	CUgraphNodeType type;
	struct gpc_context *context; /* of kernels, copies and memsets */
	union {
		struct gpc_kernel_params kernel;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		CUDA_HOST_NODE_PARAMS host;
		CUevent event;
		struct gpc_graph *child;
	};
};

/*
 * These make parameters of what the application gives, and check it as CUDA does when a node is
 * added.  Where one fails there is nothing to be freed.  ctx NULL: the current context.
 */
CUresult gpc_node_params_kernel(const CUDA_KERNEL_NODE_PARAMS *given,
				struct gpc_node_params *params);
CUresult gpc_node_params_copy(const CUDA_MEMCPY3D *given, CUcontext ctx,
			      struct gpc_node_params *params);
CUresult gpc_node_params_fill(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx,
			      struct gpc_node_params *params);
CUresult gpc_node_params_host(const CUDA_HOST_NODE_PARAMS *given, struct gpc_node_params *params);
CUresult gpc_node_params_event(CUgraphNodeType type, CUevent event, struct gpc_node_params *params);
/* Any of these, or a child, or an empty node.  CUDA_ERROR_NOT_SUPPORTED: another type. */
CUresult gpc_node_params_any(const CUgraphNodeParams *given, struct gpc_node_params *params);

/* Sets or replaces one attribute of a kernel's launches.  CUDA_ERROR_NOT_SUPPORTED: one that a
 * node of a graph cannot have. */
CUresult gpc_kernel_params_set(struct gpc_kernel_params *kernel, CUlaunchAttributeID id,
			       const CUlaunchAttributeValue *value);

/* A copy that owns what it points to. */
CUresult gpc_node_params_dup(const struct gpc_node_params *params, struct gpc_node_params *copy);
void gpc_node_params_free(struct gpc_node_params *params);
/* Gives a node others of the same type, and frees what it had. */
void gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now);

/* As the application gets to see it. */
void gpc_kernel_params_tell(const struct gpc_node_params *params, CUDA_KERNEL_NODE_PARAMS *told);

#endif /* GPC_NODE_PARAMS_H */
