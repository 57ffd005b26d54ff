/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, executables and their nodes, for who makes them and who runs them.  The nodes are changed
 * by who has the graph; an executable stays as it is.
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
	bool packed; /* they came as bytes: it takes no attribute for cooperative launches */
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_CONDITIONAL_NODE_PARAMS condition; /* phGraph_out: handles of the same, or NULL */
	struct gs_graph **bodies;
	struct gs_device_node *device; /* of one that kernels change: a reference; or NULL */
	bool disabled;                 /* by a kernel */
};

/* A number that kernels set, and what it is when a launch begins. */
struct gs_graph_handle {
	uint64_t number;
	unsigned int value;
	bool assigned;
};

/* A CUgraph or a CUgraphExec. */
struct gs_graph {
	struct gs_object object;
	struct gs_node *nodes;      /* utlist */
	struct gs_graph *source;    /* of an executable: what it was made of; a reference */
	struct gs_graph *updated;   /* of one: what it has now instead of its own nodes; or NULL */
	struct gs_graph *outermost; /* of a body: the graph whose handles its nodes have */
	struct gs_graph_handle *handles;
	size_t handle_count;
	unsigned int executables; /* of this one that are not gone; atomic */
	bool runs_alone;        /* node by node: it has conditions, or nodes that kernels change */
	bool launchable;        /* an executable that kernels may launch */
	_Atomic bool uploaded;  /* what they need of it is on the device */
	_Atomic bool under_way; /* it runs, or kernels have launched it */
};

/* graph.c */
/* What begins a call: a reference to what the handle is of, that gs_object_put() gives up; NULL:
 * the call's result is *result_p. */
void *gs_graph_enter(const void *handle, enum gs_kind kind, CUresult *result_p);
struct gs_graph *gs_graph_create(enum gs_kind kind);
CUresult gs_graph_copy_nodes(struct gs_graph *to, const struct gs_graph *from);
/* Checks a kernel's parameters, and takes them over. */
CUresult gs_node_take_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gs_node *node);
CUresult gs_graph_add(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		      size_t count, const struct gs_node *from);
/* Gives one node to the stream. graphs: what its kernel may launch; or NULL. */
CUresult gs_node_run(const struct gs_node *node, CUstream stream, const struct gs_graphs *graphs);

/* graph_condition.c: the bodies of a node like `from`, empty or copied. */
CUresult gs_node_make_bodies(struct gs_node *node, const struct gs_node *from,
			     struct gs_graph *graph);
void gs_node_free_bodies(struct gs_node *node);
/* Whether each handle of a condition is a node's. */
bool gs_graph_all_handles_taken(const struct gs_graph *graph);
/* Such a graph, or one whose kernels may launch others. */
CUresult gs_graph_launch_alone(struct gs_graph *graph, CUstream stream);
/* What the handles of an executable are when it begins. */
void gs_graph_set_defaults(const struct gs_graph *graph);
/* What an executable is now: a reference. */
struct gs_graph *gs_graph_now(struct gs_graph *exec);
/* By the stream's thread, in the inner stream, until all of it is done; false: it is to stop. */
bool gs_graph_run_nodes(const struct gs_graph *graph, CUstream inner,
			const struct gs_stream *stream, const struct gs_graphs *graphs);

/* graph_node.c: nodes that kernels change. */
struct gs_node_change;
/* A node of an executable, which is the one that is changed now. */
void gs_device_node_begin(struct gs_node *node);
/* ... no more, for it ends; gone: no other one will be. */
void gs_device_node_end(struct gs_node *node, bool gone);
struct gs_device_node *gs_device_node_ref(struct gs_device_node *device);
/* A gs_graphs's. */
int gs_device_node_change(const struct gs_graphs *graphs, uint64_t number,
			  const struct gs_node_change *change);

/* graph_launch.c: executables that kernels may launch. */
CUresult gs_graph_make_launchable(struct gs_graph *exec);
void gs_graph_end_launchable(const struct gs_graph *exec);
/* Whether there is any. */
bool gs_graph_any_launchable(void);
/* As gs_graph_run_nodes(), with all that its kernels launch. now: what the executable was then. */
bool gs_graph_run_all(struct gs_graph *exec, const struct gs_graph *now, CUstream inner,
		      const struct gs_stream *stream);

#endif /* GS_GRAPH_H */
