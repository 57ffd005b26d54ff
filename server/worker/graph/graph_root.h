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
 * drops it; the next one can be built when it is gone. Handles of two roots may have the same
 * number, so the client always names the root.
 *
 * Ownership: the session, through its handle table.
 * Threads: executor only, with the device current where the driver is called.
 * Errors: CUresult, unless noted.
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

/* A kernel node that kernels can update. It stays in the graph, and one executable contains it. */
struct gpd_updatable {
	uint64_t name; /* the handle that device code has */
	CUgraphNode node;
	bool used; /* by the plan that is being built */
};

/* A root, registered under the client's name. */
struct gpd_graph_root {
	struct gpd_handle handle;
	struct gpd_context *context;
	struct gpd_partition *partition; /* a reference, or NULL */
	CUgraph driver;
	uint64_t *handles;
	size_t count;
	struct gpd_updatable *updatables;
	size_t updatable_count;
	CUgraphNode *from, *to; /* edges from updatable nodes, to be removed */
	size_t edge_count;
	bool occupied; /* by an executable that the client has not dropped */
	bool made;     /* had an executable: the driver may not yet have noticed its end */
};

/* Returns NULL if there is no such root. */
struct gpd_graph_root *gpd_graph_root_get(const struct gpd_session *session, uint32_t id);
/* Whether the conditional handle belongs to the root. */
bool gpd_graph_root_has(const struct gpd_graph_root *root, uint64_t handle);
/* Marks the updatable node of this name as used and returns it. NULL: no such node, or already
 * used. */
struct gpd_updatable *gpd_graph_root_acquire_node(const struct gpd_graph_root *root, uint64_t name);
/* Whether every updatable node of the root is marked as used. */
bool gpd_graph_root_all_used(const struct gpd_graph_root *root);
/* To be called before or after cuGraphAddDependencies(): notes the edges from updatable nodes,
 * which the next gpd_graph_root_occupy() has to remove. */
CUresult gpd_graph_root_note_edges(struct gpd_graph_root *root, const CUgraphNode *from,
				   size_t count, CUgraphNode to);
/* Occupies the root for a new executable and returns its graph, which then contains only the
 * updatable nodes, without edges and marked unused. Waits while a dropped executable may still run.
 * CUDA_ERROR_NOT_SUPPORTED: the root is occupied. */
CUresult gpd_graph_root_occupy(struct gpd_session *session, struct gpd_graph_root *root,
			       CUgraph *graph_p);
/* Instantiates the root's graph. CUDA_ERROR_NOT_SUPPORTED: also if the driver counts the former
 * executable for longer than a tenth of a second. */
CUresult gpd_graph_root_instantiate(const struct gpd_session *session, struct gpd_graph_root *root,
				    CUgraphExec *exec_p);
/* Ends the occupation: the client has dropped the executable, or none could be built. The root may
 * be gone already. */
void gpd_graph_root_vacate(const struct gpd_session *session, CUgraph driver);

/* Destroys the roots of a context; NULL: all. */
void gpd_graph_root_destroy_context(struct gpd_session *session, const struct gpd_context *context);

/* Returns the partition of the session's streams in the context, or NULL; no reference is added. */
struct gpd_partition *gpd_graph_partition(const struct gpd_session *session,
					  const struct gpd_context *context);

#endif /* GPD_GRAPH_ROOT_H */
