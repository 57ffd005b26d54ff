/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution plan of a graph: the steps by which a launch executes it (docs/graphs.md).
 *
 * A step is either a subgraph or a client step. A subgraph is a set of kernels, memsets,
 * conditional nodes and copies within device memory, all of one context; the daemon creates a graph
 * of its driver from it. A client step is one node that the client executes as the equivalent
 * stream call.
 *
 * Each step belongs to a stage. Stages run one after the other in stream order. A step of an even
 * stage is a subgraph, one per context, and the subgraphs of a stage may run concurrently. A step
 * of an odd stage is a client step; several of one stage are posted in turn.
 *
 * Ownership: the caller owns a plan until gpc_plan_free(). A plan owns copies of what it needs of
 * the graph, and references to memory operations (stream_ops/mem_op.h). Contexts are borrowed, and
 * `root` is borrowed from the graph, which must therefore outlive the plan.
 * Threads: making a plan requires gpc_graphs_lock; using and freeing it does not. One thread uses a
 * plan at a time.
 */
#ifndef GPC_GRAPH_PLAN_H
#define GPC_GRAPH_PLAN_H

#include "client/graph/graph.h"
#include "client/module/launch_shape.h"
#include "protocol/graph_plan.h"

/* A step of a plan. Steps are in the order of their stages. */
struct gpc_step {
	bool is_client;
	/* context of its nodes; NULL: a client step whose node has none, such as a host function */
	struct gpc_context *context;
	/* number of its stage, from 0: even for subgraphs, odd for client steps */
	size_t stage;
	/* only of a client step: what gpc_step_params_copy() copied; pointers to host memory in it
	 * are the application's */
	struct gpc_node_params params;
	/* only of a subgraph: its encoding for the daemon; the plan owns its memory */
	struct gp_graph_writer writer;
};

/* A plan. gpc_plan_make() initializes it. */
struct gpc_plan {
	struct gpc_step *steps;
	size_t count;
	bool multi_context; /* the nodes belong to several contexts */
	/* kernels may launch the graph, which is then a single subgraph */
	bool launchable;
	bool updatable; /* contains device-updatable nodes */
	/* checks of the launches that the daemon may reject (client/module/launch_shape.h);
	 * gpc_exec_steps_send() removes those that turn out to be unnecessary */
	struct gpc_launch_shapes shapes;
	/* Root of the conditional handles and device-updatable nodes in the plan (graph_root.h),
	 * borrowed from the graph; NULL: none. */
	const struct gpc_graph_root *root;
	/* root_stage: stage of the subgraph that uses the root; all uses of a root are in one
	 * subgraph; meaningless without a root. stage: only while the plan is made, the stage that
	 * is being written. */
	size_t root_stage, stage;
	/* only while the plan is made: context of the subgraph that is being written */
	struct gpc_context *subgraph_context;
};

/*
 * Makes a plan. launchable: kernels may launch the graph. On success the caller calls
 * gpc_plan_free(). On failure there is nothing to free, and *error_p is the node of the graph that
 * caused the error, or NULL if no single node did. Posts nothing of the graph, but may wait for the
 * daemon as gpc_copy_3d() does (client/copy/copy_region.h).
 * Errors: CUDA_ERROR_OUT_OF_MEMORY, also for a subgraph larger than GP_GRAPH_PLAN_MAX
 * (protocol/graph_plan.h).
 * CUDA_ERROR_INVALID_VALUE: the graph has a cycle, or `launchable` is set and the graph has no
 * kernel, memset or copy.
 * CUDA_ERROR_NOT_SUPPORTED: a body of a condition contains a node of another context than the
 * condition, or a node that the client would have to execute; the graph uses several roots, or one
 * root in several subgraphs; or `launchable` is set for nodes of several contexts or for a node
 * that kernels cannot launch. Without `launchable` it is also reported to the user
 * (client/base/unsupported_feature.h).
 * Otherwise an error of looking up a kernel or of encoding a launch (client/module/launch.h).
 */
CUresult gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
		       const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock);
/* Encodes a kernel node alone, without dependencies, into an empty (zeroed) writer. Used before
 * gpc_graph_root_create_node(), by which the daemon makes the node device-updatable. Returns
 * CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, or an error of looking up the kernel or of encoding the
 * launch. The caller frees writer->memory with free(), also after a failure. No lock is required if
 * the parameters do not change. */
CUresult gpc_plan_write_kernel(const struct gpc_node_params *params,
			       struct gp_graph_writer *writer);
/* Frees the memory of a plan, which becomes empty. */
void gpc_plan_free(struct gpc_plan *plan);

/* Copies the parameters of a client step; the caller calls gpc_step_params_free() for the copy. The
 * copy is shallow, except that it has a reference of its own to memory operations
 * (stream_ops/mem_op.h). No lock is required. */
void gpc_step_params_copy(const struct gpc_node_params *params, struct gpc_node_params *copy);
/* Releases the reference that gpc_step_params_copy() acquired. No lock is required. */
void gpc_step_params_free(struct gpc_node_params *params);

#endif /* GPC_GRAPH_PLAN_H */
