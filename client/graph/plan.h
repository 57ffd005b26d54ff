/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a graph is run: as steps, one after the other in the order of the stream that it is launched
 * into.  A step is a set of kernels, memsets and copies within device memory of one context, which
 * the daemon makes a graph of its driver from; or one node that the client does as the call of a
 * stream that it stands for (docs/graphs.md).  A plan shares nothing with the graph that it was
 * made of.
 */
#ifndef GPC_PLAN_H
#define GPC_PLAN_H

#include "client/code/shape.h"
#include "client/graph/graph.h"
#include "protocol/graph_plan.h"

struct gpc_step {
	bool is_client;
	struct gpc_context *context;   /* of its nodes; NULL: the client's is of none */
	size_t stage;                  /* sets of one stage may run beside each other */
	struct gpc_node_params params; /* of the client's: what it points to is the application's */
	struct gp_graph_writer writer; /* a set of the daemon's, encoded */
};

struct gpc_plan {
	struct gpc_step *steps;
	size_t count;
	bool multi_context;              /* contexts, as nodes have */
	bool launchable;                 /* by kernels: it is one set */
	bool updatable;                  /* by kernels: it has nodes that they change */
	struct gpc_launch_shapes shapes; /* of launches that the daemon may refuse */
	/* While it is made: whose handles its conditions have, and the stages of theirs and now. */
	const struct gpc_graph_root *root;
	size_t root_stage, stage;
	struct gpc_context *subgraph_context; /* of the set that is written */
};

/*
 * CUDA_ERROR_INVALID_VALUE: the graph has a cycle; CUDA_ERROR_NOT_SUPPORTED: a condition's nodes
 * are of several contexts, or the graph is not for kernels to launch.  *error_p: the node at fault,
 * or NULL.
 */
CUresult gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
		       const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock);
/* Only this node, which depends on nothing; the caller frees the writer's memory. */
CUresult gpc_plan_write_kernel(const struct gpc_node_params *params,
			       struct gp_graph_writer *writer);
void gpc_plan_free(struct gpc_plan *plan);

/* Of a step of the client's, which owns no more than a reference to operations.  They need no lock.
 */
void gpc_step_params_copy(const struct gpc_node_params *params, struct gpc_node_params *copy);
void gpc_step_params_free(struct gpc_node_params *params);

#endif /* GPC_PLAN_H */
