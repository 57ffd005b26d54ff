/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution plan of a graph: the steps that a launch executes one after the other in stream order
 * (docs/graphs.md).
 *
 * A step is either a subgraph of kernels, memsets and copies within device memory of one context,
 * from which the daemon creates a graph of its driver; or one node that the client executes as the
 * equivalent stream call.
 * Ownership: a plan shares no memory with the graph that it was made from, except references to
 * memory operations.
 * Threads: making a plan requires gpc_graphs_lock; using and freeing it does not.
 */
#ifndef GPC_GRAPH_PLAN_H
#define GPC_GRAPH_PLAN_H

#include "client/graph/graph.h"
#include "client/module/launch_shape.h"
#include "protocol/graph_plan.h"

/* A step. */
struct gpc_step {
	bool is_client;
	struct gpc_context *context;   /* context of its nodes; NULL: a client step without one */
	size_t stage;                  /* subgraphs of one stage may run concurrently */
	struct gpc_node_params params; /* client step: pointers in it are the application's */
	struct gp_graph_writer writer; /* encoded subgraph */
};

/* A plan. */
struct gpc_plan {
	struct gpc_step *steps;
	size_t count;
	bool multi_context;              /* nodes belong to several contexts */
	bool launchable;                 /* by kernels: it is a single subgraph */
	bool updatable;                  /* contains device-updatable nodes */
	struct gpc_launch_shapes shapes; /* launch shapes that the daemon may reject */
	/* State while the plan is made: root of its handles and their stage, and the present
	 * stage. */
	const struct gpc_graph_root *root;
	size_t root_stage, stage;
	struct gpc_context *subgraph_context; /* context of the subgraph being written */
};

/*
 * Makes a plan. Returns CUDA_ERROR_INVALID_VALUE if the graph has a cycle, CUDA_ERROR_NOT_SUPPORTED
 * if nodes of a condition belong to several contexts or the graph cannot be launched by kernels.
 * *error_p is set to the offending node or NULL.
 */
CUresult gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
		       const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock);
/* Encodes only this node, without dependencies. The caller frees the writer's memory. */
CUresult gpc_plan_write_kernel(const struct gpc_node_params *params,
			       struct gp_graph_writer *writer);
void gpc_plan_free(struct gpc_plan *plan);

/* Copy and free the parameters of a client step, which own at most a reference to memory
 * operations. No lock is required. */
void gpc_step_params_copy(const struct gpc_node_params *params, struct gpc_node_params *copy);
void gpc_step_params_free(struct gpc_node_params *params);

#endif /* GPC_GRAPH_PLAN_H */
