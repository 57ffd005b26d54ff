/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the driver that handles of conditions, and nodes that kernels change, belong to.
 *
 * Device code of the client holds the driver's own handles and nodes, so they are made when the
 * client asks, before there is anything to launch.  What is launched later is made in the graph
 * that they belong to, each time anew: its other nodes before are dropped.  A handle is of one
 * context of the driver, so all that is made there stays on the multiprocessors that the session
 * had then.  The driver has one executable of such a graph at a time: it occupies the root until
 * the client drops it, and the next is made when it is gone.  Two roots may have handles of the
 * same number, so a client names the root.  Executor only, with the device current where the driver
 * is called.
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

/* A kernel node that kernels change: it stays in the graph, and one executable has it. */
struct gpd_updatable {
	uint64_t name; /* as device code has it */
	CUgraphNode node;
	bool used; /* by the set that is made there now */
};

/* The session's, under the client's name. */
struct gpd_graph_root {
	struct gpd_handle handle;
	struct gpd_context *context;
	struct gpd_partition *partition; /* a reference, or NULL */
	CUgraph driver;
	uint64_t *handles;
	size_t count;
	struct gpd_updatable *updatables;
	size_t updatable_count;
	CUgraphNode *from, *to; /* edges between them */
	size_t edge_count;
	bool occupied; /* by an executable that the client has not dropped */
	bool made;     /* one was there: the driver may not know yet that it has ended */
};

/* NULL: none. */
struct gpd_graph_root *gpd_graph_root_get(const struct gpd_session *session, uint32_t id);
bool gpd_graph_root_has(const struct gpd_graph_root *root, uint64_t handle);
/* Not used yet; NULL: there is none of this name. */
struct gpd_updatable *gpd_graph_root_acquire_node(const struct gpd_graph_root *root, uint64_t name);
bool gpd_graph_root_all_used(const struct gpd_graph_root *root);
/* Behind cuGraphAddDependencies: notes the edges that the next gpd_graph_root_occupy() has to
 * remove. */
CUresult gpd_graph_root_note_edges(struct gpd_graph_root *root, const CUgraphNode *from,
				   size_t count, CUgraphNode to);
/* Without nodes but for those that kernels change, which have no edges and are not used: for an
 * executable.  Blocks while one that was dropped may still run; CUDA_ERROR_NOT_SUPPORTED: one is
 * there. */
CUresult gpd_graph_root_occupy(struct gpd_session *session, struct gpd_graph_root *root,
			       CUgraph *graph_p);
/* Makes the executable of what it holds.  CUDA_ERROR_NOT_SUPPORTED: also if the driver counts the
 * one before for longer than a tenth of a second. */
CUresult gpd_graph_root_instantiate(const struct gpd_session *session, struct gpd_graph_root *root,
				    CUgraphExec *exec_p);
/* The client has dropped the executable, or none could be made; the root may be gone. */
void gpd_graph_root_vacate(const struct gpd_session *session, CUgraph driver);

/* Of a context that ends; NULL: all. */
void gpd_graph_root_destroy_context(struct gpd_session *session, const struct gpd_context *context);

/* The partition that the session's streams of the context have; or NULL. */
struct gpd_partition *gpd_graph_partition(const struct gpd_session *session,
					  const struct gpd_context *context);

#endif /* GPD_GRAPH_ROOT_H */
