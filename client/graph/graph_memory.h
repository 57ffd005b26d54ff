/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that nodes of graphs allocate and free (cuGraphAddMemAllocNode).
 *
 * It has its address, and counts for the session, from the adding of the node until no node and no
 * executable names it and it is not in use.  Allocations of one graph that follow each other, as
 * the first is freed by a node before the second, share an address.  So a launch allocates nothing:
 * it says which memory is in use now, and which no more.  What is in use and freed by no node the
 * application may free.
 *
 * Each is counted: a reference for each node, those of executables too.
 */
#ifndef GPC_GRAPH_MEMORY_H
#define GPC_GRAPH_MEMORY_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_graph_memory;

/*
 * What a node of these parameters will allocate, with a reference.  Without the lock: the daemon
 * may have to give memory.  CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY: not for the memory
 * itself, which a node may free.
 */
CUresult gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given,
				 struct gpc_graph_memory **memory_p);
struct gpc_graph_memory *gpc_graph_memory_ref(struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
void gpc_graph_memory_unref(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);

/* The node that allocates it has been added: it gets what a node before frees, if that is large
 * enough, and so another address.  CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_graph_memory_place(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* The one that begins at the address, without a reference; where several have it by turns, that
 * which is in use, or the last.  NULL: none. */
struct gpc_graph_memory *gpc_graph_memory_find(CUdeviceptr address) GP_LOCKED(gpc_graphs_lock);
/* Of one that was placed. */
CUdeviceptr gpc_graph_memory_address(const struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
void gpc_graph_memory_get_params(const struct gpc_graph_memory *memory,
				 CUDA_MEM_ALLOC_NODE_PARAMS *out) GP_LOCKED(gpc_graphs_lock);

/* Whether a node of the application's frees it, which one alone may do. */
bool gpc_graph_memory_is_freed(const struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);
void gpc_graph_memory_set_freed(struct gpc_graph_memory *memory, bool freed)
	GP_LOCKED(gpc_graphs_lock);

/*
 * The executable's graph is about to be launched.  CUDA_ERROR_INVALID_VALUE, and nothing is done:
 * it allocates what is in use, unless auto_free, or frees what is not.
 */
CUresult gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_MEMORY_H */
