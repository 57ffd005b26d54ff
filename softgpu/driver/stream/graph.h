/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, executable graphs and their nodes: creation and execution.
 *
 * Ownership: nodes belong to their graph or executable.
 * Threads: a graph's nodes are changed by one thread at a time; an executable's nodes do not
 * change.
 */
#ifndef GS_GRAPH_H
#define GS_GRAPH_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

#include <stdatomic.h>

#define GS_NODE_ATTRIBUTES_MAX 16

struct gs_device_node;
struct gs_graph;
struct gs_graphs;
struct gs_green;
struct gs_stream;

struct gs_node {
	struct gs_object object; /* owner: the graph or executable */
	struct gs_node *prev, *next;
	CUgraphNodeType type;
	struct gs_green *green; /* a reference, or NULL */
	CUfunction function;
	CUlaunchConfig config;
	CUlaunchAttribute attributes[GS_NODE_ATTRIBUTES_MAX];
	uint8_t *params;
	size_t params_size;
	/* Parameters were passed as a buffer: the cooperative attribute is not allowed. */
	bool packed;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_CONDITIONAL_NODE_PARAMS condition; /* phGraph_out: handles of `bodies`, or NULL */
	struct gs_graph **bodies;
	struct gs_device_node *device; /* for device-updatable nodes: a reference; otherwise NULL */
	bool disabled;                 /* by a kernel */
};

/* A condition value that kernels set, and its initial value for each launch. */
struct gs_graph_handle {
	uint64_t number;
	unsigned int value;
	bool assigned;
};

/* A CUgraph or a CUgraphExec. */
struct gs_graph {
	struct gs_object object;
	struct gs_node *nodes;   /* utlist */
	struct gs_graph *source; /* executable: the graph it was instantiated from, a reference */
	/* Executable: replacement for its own nodes after an update, or NULL. */
	struct gs_graph *updated;
	struct gs_graph *outermost; /* body: the graph that owns the handles of its nodes */
	struct gs_graph_handle *handles;
	size_t handle_count;
	unsigned int executables; /* number of its live executables; atomic */
	bool runs_alone; /* executed node by node: has conditional or device-updatable nodes */
	bool launchable; /* executable that kernels may launch */
	_Atomic bool uploaded;  /* uploaded to the device */
	_Atomic bool under_way; /* running, or launched by kernels */
};

/* graph.c */
/* Begins a call: returns a reference to the object of a handle, which gs_object_put() drops. NULL:
 * the call's result is *result_p. */
void *gs_graph_enter(const void *handle, enum gs_kind kind, CUresult *result_p);
struct gs_graph *gs_graph_create(enum gs_kind kind);
CUresult gs_graph_copy_nodes(struct gs_graph *to, const struct gs_graph *from);
/* Validates and copies a kernel's parameters. */
CUresult gs_node_take_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gs_node *node);
CUresult gs_graph_add(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		      size_t count, const struct gs_node *from);
/* Submits a node to the stream. graphs: operations for its kernel, or NULL. */
CUresult gs_node_run(const struct gs_node *node, CUstream stream, const struct gs_graphs *graphs);

/* graph_condition.c: creates the bodies of a conditional node like `from`, empty or copied. */
CUresult gs_node_make_bodies(struct gs_node *node, const struct gs_node *from,
			     struct gs_graph *graph);
void gs_node_free_bodies(struct gs_node *node);
/* Whether each condition handle is used by a node. */
bool gs_graph_all_handles_taken(const struct gs_graph *graph);
/* Launches a graph that runs node by node, or whose kernels may launch others. */
CUresult gs_graph_launch_alone(struct gs_graph *graph, CUstream stream);
/* Resets the condition values of an executable to their initial values. */
void gs_graph_set_defaults(const struct gs_graph *graph);
/* Returns a reference to the current content of an executable. */
struct gs_graph *gs_graph_now(struct gs_graph *exec);
/* Runs all nodes in the inner stream and waits for them; called by the stream's thread. Returns
 * false if the stream must stop. */
bool gs_graph_run_nodes(const struct gs_graph *graph, CUstream inner,
			const struct gs_stream *stream, const struct gs_graphs *graphs);

/* graph_node.c: device-updatable nodes. */
struct gs_node_change;
/* Makes a node of an executable the target of updates by kernels. */
void gs_device_node_begin(struct gs_node *node);
/* Ends that. gone: the node has no later target. */
void gs_device_node_end(struct gs_node *node, bool gone);
struct gs_device_node *gs_device_node_ref(struct gs_device_node *device);
/* Implements gs_graphs.change. */
int gs_device_node_change(const struct gs_graphs *graphs, uint64_t number,
			  const struct gs_node_change *change);

/* graph_launch.c: executables that kernels may launch. */
CUresult gs_graph_make_launchable(struct gs_graph *exec);
void gs_graph_end_launchable(const struct gs_graph *exec);
/* Whether there is any launchable executable. */
bool gs_graph_any_launchable(void);
/* Like gs_graph_run_nodes(), including everything that its kernels launch. now: content of the
 * executable at the launch. */
bool gs_graph_run_all(struct gs_graph *exec, const struct gs_graph *now, CUstream inner,
		      const struct gs_stream *stream);

#endif /* GS_GRAPH_H */
