/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution plan of a graph: the steps that a launch executes one after the other in stream order
 * (docs/graphs.md).
 *
 * A step is either a subgraph of kernels, memsets and copies within device memory of one context,
 * from which the daemon creates a graph of its driver; or one node that the client executes as the
 * equivalent stream call (a client step).
 *
 * Ownership: the caller owns a plan until gpc_plan_free(). A plan shares no memory with the graph
 * that it was made from, except references to memory operations.
 * Threads: making a plan requires gpc_graphs_lock; using and freeing it does not. One thread uses a
 * plan at a time.
 */
#ifndef GPC_GRAPH_PLAN_H
#define GPC_GRAPH_PLAN_H

#include "client/graph/graph.h"
#include "client/module/launch_shape.h"
#include "protocol/graph_plan.h"

/* A step of a plan. */
struct gpc_step {
	bool is_client;
	struct gpc_context *context; /* context of its nodes; NULL: a client step that needs none */
	size_t stage; /* position in the plan; subgraphs of one stage may run concurrently */
	struct gpc_node_params
		params; /* of a client step; pointers to host memory in it are the application's */
	struct gp_graph_writer writer; /* of a subgraph: its encoding for the daemon */
};

/* A plan. gpc_plan_make() initializes it. */
struct gpc_plan {
	struct gpc_step *steps;
	size_t count;
	bool multi_context; /* the nodes belong to several contexts */
	bool launchable;    /* can be launched by kernels; it is then a single subgraph */
	bool updatable;     /* contains device-updatable nodes */
	struct gpc_launch_shapes
		shapes; /* launch shapes that the daemon may reject, to be checked before sending */
	/* Root of the conditional handles and device-updatable nodes in the plan (graph_root.h),
	 * borrowed from the graph; NULL: none. */
	const struct gpc_graph_root *root;
	/* root_stage: stage of the step that uses the root; meaningless without a root. stage: the
	 * current stage while the plan is made. */
	size_t root_stage, stage;
	struct gpc_context *subgraph_context; /* while the plan is made: context of the subgraph
						 that is being written */
};

/*
 * Makes a plan. launchable: kernels may launch the graph. Returns CUDA_SUCCESS,
 * CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE if the graph has a cycle, or
 * CUDA_ERROR_NOT_SUPPORTED if nodes of a condition belong to several contexts or kernels cannot
 * launch the graph. On failure the plan needs no freeing, and *error_p is the offending node, or
 * NULL if it is unknown.
 */
CUresult gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
		       const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock);
/* Encodes a kernel node without dependencies into an empty writer. Returns CUDA_SUCCESS,
 * CUDA_ERROR_OUT_OF_MEMORY or the errors of encoding the launch. The caller frees the writer's
 * memory, also after a failure. */
CUresult gpc_plan_write_kernel(const struct gpc_node_params *params,
			       struct gp_graph_writer *writer);
/* Frees the memory of a plan. */
void gpc_plan_free(struct gpc_plan *plan);

/* Copies the parameters of a client step, which own at most a reference to memory operations
 * (stream_ops/mem_op.h). The caller frees the copy. No lock is required. */
void gpc_step_params_copy(const struct gpc_node_params *params, struct gpc_node_params *copy);
/* Frees the parameters of a client step. No lock is required. */
void gpc_step_params_free(struct gpc_node_params *params);

#endif /* GPC_GRAPH_PLAN_H */
