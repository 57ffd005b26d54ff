/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph roots: driver graphs that own conditional handles and device-updatable nodes.
 *
 * Device code of the client contains the driver's own handles and nodes, so they are created when
 * the client requests them, before there is anything to launch. The executable that uses them must
 * be built in the same driver graph, each time anew after the former nodes have been removed. A
 * handle belongs to one driver context, so everything built in the root stays on the
 * multiprocessors that the session had when the root was created.
 *
 * The driver allows one executable of such a graph at a time. It occupies the root until the client
 * drops it; the next executable can be built after that. Handles of two roots may have the same
 * number, so the client always states the ID of the root.
 *
 * Life cycle: graph_build.c calls gpd_graph_root_occupy(), then has() for each conditional node,
 * acquire_node() and note_edges() for each updatable node, and at the end all_used() and
 * instantiate(). It calls vacate() when the client has dropped the executable or one of these steps
 * has failed.
 *
 * Roots, handles and nodes are created by the hooks gpd_gpGraphRoot(), gpd_gpGraphHandle() and
 * gpd_gpGraphNode(), declared in gpd_calls.h.
 *
 * Ownership: the session, through its handle table. Returned roots are borrowed.
 * Threads: executor only, with the device current where the driver is called.
 * Errors: CUDA_SUCCESS or the driver's error, unless noted.
 */
#ifndef GPD_GRAPH_ROOT_H
#define GPD_GRAPH_ROOT_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_context;
struct gpd_partition;
struct gpd_session;

/* A kernel node that kernels can update. It stays in the root's graph, and one executable contains
 * it. */
struct gpd_updatable {
	uint64_t node_handle; /* device handle of the node, which the client's device code has */
	CUgraphNode node;
	bool used; /* the plan that is being built uses it */
};

/* A root, registered in the handle table under the client's ID. */
struct gpd_graph_root {
	struct gpd_handle handle;
	struct gpd_context *context; /* context in which it was created; borrowed */
	/* Partition of its kernels, a reference; NULL: the whole device. */
	struct gpd_partition *partition;
	CUgraph driver;    /* the driver graph, owned */
	uint64_t *handles; /* conditional handles, an owned array of count elements */
	size_t count;
	struct gpd_updatable *updatables; /* owned array of updatable_count elements */
	size_t updatable_count;
	/* Edges from updatable nodes, which the next gpd_graph_root_occupy() removes: edge i leads
	 * from from[i] to to[i]. Owned arrays of edge_count elements. */
	CUgraphNode *from, *to;
	size_t edge_count;
	/* an executable that the client has not dropped was built in it, or is being built */
	bool occupied;
	/* an executable was built in it at least once; the driver may still count the executable */
	bool made;
};

/* Returns the root with this ID, borrowed; NULL: there is no such root. */
struct gpd_graph_root *gpd_graph_root_get(const struct gpd_session *session, uint32_t id);
/* Returns whether the conditional handle belongs to the root. */
bool gpd_graph_root_has(const struct gpd_graph_root *root, uint64_t handle);
/* Marks the updatable node with this device handle, from the client, as used, and returns it,
 * borrowed from the root until the next node is created in it. NULL: there is no such node, or it
 * is already used. */
struct gpd_updatable *gpd_graph_root_acquire_node(const struct gpd_graph_root *root,
						  uint64_t node_handle);
/* Returns whether every updatable node of the root is marked as used. */
bool gpd_graph_root_all_used(const struct gpd_graph_root *root);
/* Stores which of the edges from the `count` nodes `from` to the node `to` begin at updatable
 * nodes; the next gpd_graph_root_occupy() removes them. Called before the edges are added by
 * cuGraphAddDependencies(). Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY; then nothing is
 * stored. */
CUresult gpd_graph_root_note_edges(struct gpd_graph_root *root, const CUgraphNode *from,
				   size_t count, CUgraphNode to);
/*
 * Occupies the root for a new executable. Returns CUDA_SUCCESS and sets *graph_p to the root's
 * graph, borrowed, which then contains only the updatable nodes, without edges and marked unused.
 * Blocks while a dropped executable of any root of the session may still run. Ended by
 * gpd_graph_root_vacate(). On failure the caller does not occupy the root, and must not use
 * *graph_p; nodes of the former executable may be left, and the next call removes them.
 *
 * CUDA_ERROR_NOT_SUPPORTED: the root is occupied.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of the driver.
 */
CUresult gpd_graph_root_occupy(struct gpd_session *session, struct gpd_graph_root *root,
			       CUgraph *graph_p);
/* Instantiates the graph of a root that the caller occupies. Returns CUDA_SUCCESS and sets *exec_p,
 * which the caller destroys by cuGraphExecDestroy(); or an error of the driver. Blocks and retries,
 * for about a tenth of a second, while the driver still counts the former executable; then returns
 * CUDA_ERROR_NOT_SUPPORTED. On failure the caller vacates the root. */
CUresult gpd_graph_root_instantiate(const struct gpd_session *session, struct gpd_graph_root *root,
				    CUgraphExec *exec_p);
/* Ends the occupation of the root with this driver graph: the client has dropped the executable, or
 * none could be built. Does nothing if the root has been destroyed. */
void gpd_graph_root_vacate(const struct gpd_session *session, CUgraph driver);

/* Destroys the roots of a context and their driver graphs, and uncharges their handles and nodes;
 * context NULL: all roots of the session. Called after the graphs built in them were destroyed or
 * left to the responder. May change the current device. */
void gpd_graph_root_destroy_context(struct gpd_session *session, const struct gpd_context *context);

/* Returns the partition of the session's streams in the context, borrowed. NULL: they use the whole
 * device, or the context has no stream. */
struct gpd_partition *gpd_graph_partition(const struct gpd_session *session,
					  const struct gpd_context *context);

#endif /* GPD_GRAPH_ROOT_H */
