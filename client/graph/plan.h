/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a graph is run: as steps, one after the other in the order of the stream that it is launched
 * into.  A step is a set of kernels, memsets and copies within device memory, which the daemon
 * makes a graph of its driver from; or one node that the client does as the call of a stream that
 * it stands for (docs/graphs.md).  Under gpc_graphs_lock.
 */
#ifndef GPC_PLAN_H
#define GPC_PLAN_H

#include "client/graph/graph.h"
#include "protocol/graph_plan.h"

struct gpc_step {
	const struct gpc_node *node;   /* of the client's; NULL: a set of the daemon's */
	struct gp_graph_writer writer; /* the set, encoded */
};

struct gpc_plan {
	struct gpc_context *context; /* of the sets; NULL: there is none */
	struct gpc_step *steps;
	size_t count;
};

/*
 * CUDA_ERROR_INVALID_VALUE: the graph has a cycle; CUDA_ERROR_NOT_SUPPORTED: its nodes are of
 * several contexts.  *error_p: the node at fault, or NULL.
 */
CUresult gpc_plan_make(const struct gpc_graph *graph, struct gpc_plan *plan,
		       const struct gpc_node **error_p);
void gpc_plan_free(struct gpc_plan *plan);

/* Puts a step of the client's into the stream. */
CUresult gpc_step_run(const struct gpc_node_params *params, CUstream stream);

#endif /* GPC_PLAN_H */
