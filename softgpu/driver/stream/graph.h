/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, executable graphs and their nodes: creation and execution.
 *
 * Ownership: graphs and executables are reference counted (object.h). Nodes belong to their graph
 * or executable, and a reference to a node is one to it.
 * Threads: a graph's nodes are changed by one thread at a time; an executable's nodes do not
 * change. Members marked atomic may be used by any thread.
 * Errors: CUDA_SUCCESS or an error as CUresult; NULL if out of memory.
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
	/* packed kernel parameters, `params_size` bytes, allocated by malloc() and owned by the
	 * node */
	uint8_t *params;
	size_t params_size;
	/* The parameters were passed as a buffer (`extra`), so the cooperative attribute is not
	 * allowed. */
	bool packed;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_CONDITIONAL_NODE_PARAMS condition; /* phGraph_out: handles of `bodies`, or NULL */
	struct gs_graph **bodies;
	struct gs_device_node *device; /* of device-updatable nodes: the shared state of their
					  updates, with a reference; otherwise NULL */
	bool disabled;                 /* whether a kernel has disabled the node */
};

/* A condition handle of a graph (cudaGraphConditionalHandleCreate()): the ID of its value, which
 * kernels set, and the value that each launch starts with if it was assigned. */
struct gs_graph_handle {
	uint64_t number;
	unsigned int value;
	bool assigned;
};

/* A CUgraph or a CUgraphExec. */
struct gs_graph {
	struct gs_object object;
	struct gs_node *nodes;   /* list (utlist) */
	struct gs_graph *source; /* executable: reference to the graph it was instantiated from;
				    graph: NULL */
	/* Executable: replacement for its own nodes after an update, or NULL. */
	struct gs_graph *updated;
	struct gs_graph *outermost; /* body of a conditional node: the graph that owns the condition
				       handles of its nodes, borrowed; otherwise NULL */
	struct gs_graph_handle *handles;
	size_t handle_count;
	unsigned int executables; /* graph: atomic number of its live executables */
	bool runs_alone; /* executed node by node, because it has conditional or device-updatable
			    nodes */
	bool launchable; /* executable: kernels may launch it */
	_Atomic bool uploaded;  /* executable: it was uploaded to the device */
	_Atomic bool under_way; /* executable: it is running, or kernels have launched it */
};

/* graph.c */
/* Starts a call with a graph or executable. Returns the object of the handle with a new reference,
 * which gs_object_put() drops. NULL: the call must return *result_p, which is
 * CUDA_ERROR_INVALID_VALUE for an unknown handle or an error of gs_enter(). */
void *gs_graph_enter(const void *handle, enum gs_kind kind, CUresult *result_p);
/* Returns an empty graph or executable (GS_KIND_GRAPH, GS_KIND_GRAPH_EXEC) without a handle and
 * with the creator's reference, or NULL if out of memory. */
struct gs_graph *gs_graph_create(enum gs_kind kind);
/* Appends copies of all nodes. Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY; the nodes
 * copied until then remain in `to`. */
CUresult gs_graph_copy_nodes(struct gs_graph *to, const struct gs_graph *from);
/* Validates a kernel node's parameters and copies them to `node`, whose green context is already
 * set. On failure node->params may be allocated; the caller frees it in all cases. */
CUresult gs_node_set_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gs_node *node);
/* Adds a copy of `from` to the graph and stores the handle of the new node in *handle.
 * Dependencies must be nodes of the graph. Returns CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE or
 * CUDA_ERROR_OUT_OF_MEMORY; the graph is then unchanged. */
CUresult gs_graph_add(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		      size_t count, const struct gs_node *from);
/* Enqueues the node's operation on the stream and does not wait. `graphs`: operations on graphs for
 * its kernel, NULL: none; must exist until the kernel is complete. Returns the result of the
 * operation's CUDA call. */
CUresult gs_node_run(const struct gs_node *node, CUstream stream, const struct gs_graphs *graphs);

/* graph_condition.c: creates the bodies of a conditional node of `graph`: copies of those of
 * `from`, or empty ones if it has none. Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. In both
 * cases gs_node_free_bodies() frees them. */
CUresult gs_node_make_bodies(struct gs_node *node, const struct gs_node *from,
			     struct gs_graph *graph);
void gs_node_free_bodies(struct gs_node *node);
/* Returns whether each condition handle of the graph is used by a node. */
bool gs_graph_all_handles_taken(const struct gs_graph *graph);
/* Enqueues an execution of the graph whose nodes are run one by one; for graphs with runs_alone,
 * and executables that kernels may launch or whose kernels launch others. Does not wait. The
 * operation has its own reference to the graph. Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or
 * the error of gs_stream_missing(). */
CUresult gs_graph_launch_alone(struct gs_graph *graph, CUstream stream);
/* Resets the condition values of an executable to their initial values. */
void gs_graph_set_defaults(const struct gs_graph *graph);
/* Returns a new reference to the current content of an executable: the executable itself, or the
 * graph that an update has replaced its nodes with. */
struct gs_graph *gs_graph_now(struct gs_graph *exec);
/* Runs all nodes in the inner stream and waits for them without a limit; called by the thread of
 * `stream`. Returns true, or false if `stream` must stop. */
bool gs_graph_run_nodes(const struct gs_graph *graph, CUstream inner,
			const struct gs_stream *stream, const struct gs_graphs *graphs);

/* graph_node.c: device-updatable nodes, which kernels update while an executable exists. Several
 * copies of such a node share a struct gs_device_node; its target is the copy that updates apply
 * to. */
struct gs_node_change;
/* Makes a node of an executable the target of updates. */
void gs_device_node_begin(struct gs_node *node);
/* Ends the updates of a node and drops its reference to node->device. gone: no copy will become the
 * target later, so the handle that kernels use becomes invalid. */
void gs_device_node_end(struct gs_node *node, bool gone);
/* Adds a reference and returns the argument. */
struct gs_device_node *gs_device_node_ref(struct gs_device_node *device);
/* Implements gs_graphs.change: updates the target of the node with that ID. Called by engine
 * workers. Returns a cudaError_t. */
int gs_device_node_change(const struct gs_graphs *graphs, uint64_t number,
			  const struct gs_node_change *change);

/* graph_launch.c: executables that kernels may launch. Makes an executable launchable. Returns
 * CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if it has no nodes or a node that is not a kernel, copy
 * or fill; it is unchanged then. */
CUresult gs_graph_make_launchable(struct gs_graph *exec);
/* Undoes gs_graph_make_launchable() when the executable is destroyed. */
void gs_graph_end_launchable(const struct gs_graph *exec);
/* Returns whether there is any launchable executable in the process. */
bool gs_graph_any_launchable(void);
/* Like gs_graph_run_nodes(), including everything that its kernels launch. now: content of the
 * executable at the launch, referenced by the caller. */
bool gs_graph_run_all(struct gs_graph *exec, const struct gs_graph *now, CUstream inner,
		      const struct gs_stream *stream);

#endif /* GS_GRAPH_H */
