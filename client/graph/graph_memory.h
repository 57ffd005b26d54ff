/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graph nodes allocate and free (cuGraphAddMemAllocNode).
 *
 * The memory has its address, and counts against the session's quota, from the addition of its node
 * until no node and no executable graph refers to it and it is not in use. Allocations of one graph
 * share an address if a node frees the first before another allocates the second. So a launch
 * allocates nothing: it only marks memory as in use or unused. The application may free memory in
 * use that no node frees.
 * Ownership: reference-counted, with a reference for each node, including those of executable
 * graphs.
 * Threads: guarded by gpc_graphs_lock.
 */
#ifndef GPC_GRAPH_MEMORY_H
#define GPC_GRAPH_MEMORY_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

/*
 * Allocates the memory of a node with these parameters, with one reference. Called without the
 * lock, as the daemon may have to provide memory. Returns CUDA_ERROR_INVALID_VALUE, or
 * CUDA_ERROR_OUT_OF_MEMORY only for its own data: missing device memory is reported by
 * gpc_graph_memory_place(), as a node may free some.
 */
CUresult gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given,
				 struct gpc_graph_memory **memory_p);
struct gpc_graph_memory *gpc_graph_memory_ref(struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
void gpc_graph_memory_unref(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);

/* Called after the allocating node was added: reuses memory that an earlier node frees, if that is
 * large enough, which changes its address. Returns CUDA_ERROR_OUT_OF_MEMORY if there is no
 * memory. */
CUresult gpc_graph_memory_place(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Returns the memory that starts at the address, without a reference. If several share it, returns
 * the one in use, or the last. NULL: none. */
struct gpc_graph_memory *gpc_graph_memory_find(CUdeviceptr address) GP_LOCKED(gpc_graphs_lock);
/* Return the address of memory that was placed, and the parameters of the memory of an allocation
 * or free node. */
CUdeviceptr gpc_graph_memory_address(const struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
CUDA_MEM_ALLOC_NODE_PARAMS gpc_node_get_alloc_params(const struct gpc_node *node)
	GP_LOCKED(gpc_graphs_lock);

/* Whether a node added by the application frees the memory; only one node may. */
bool gpc_graph_memory_is_freed(const struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);
void gpc_graph_memory_set_freed(struct gpc_graph_memory *memory, bool freed)
	GP_LOCKED(gpc_graphs_lock);

/*
 * Called before an executable graph is launched. Returns CUDA_ERROR_INVALID_VALUE, without any
 * effect, if it allocates memory that is in use, unless auto_free, or frees memory that is not.
 */
CUresult gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_MEMORY_H */
