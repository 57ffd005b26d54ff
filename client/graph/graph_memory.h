/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graph nodes allocate and free (cuGraphAddMemAllocNode).
 *
 * The memory has its address, and counts against the session's quota, from the addition of its node
 * until no node and no executable graph refers to it and it is not in use. Allocations of one graph
 * share an address if a node frees the first before another allocates the second. So a launch
 * allocates nothing: it only marks memory as in use (allocated by a launch, not freed yet) or
 * unused. The application may free memory in use that no node frees.
 *
 * Ownership: reference-counted, with a reference for each node, including those of executable
 * graphs.
 * Threads: guarded by gpc_graphs_lock. Any thread.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 */
#ifndef GPC_GRAPH_MEMORY_H
#define GPC_GRAPH_MEMORY_H

#include "client/graph/graph.h"

#include <cuda.h>
#include <stdbool.h>

/*
 * Allocates the memory of a node with these parameters. On success *memory_p has one reference,
 * which the caller releases with gpc_graph_memory_unref(); on failure *memory_p is unchanged.
 * Called without the lock, as the daemon may have to provide memory.
 * Errors: CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_NOT_SUPPORTED; CUDA_ERROR_OUT_OF_MEMORY if the
 * client has no memory for its own data. Missing device memory is reported by
 * gpc_graph_memory_place() instead, as a preceding node may free some.
 */
CUresult gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given,
				 struct gpc_graph_memory **memory_p);
/* Adds a reference and returns the memory. */
struct gpc_graph_memory *gpc_graph_memory_ref(struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
/* Releases a reference. The memory is freed with the last one, unless it is in use; then it is
 * freed when the application frees it. */
void gpc_graph_memory_unref(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);

/* Called after the allocating node was added to its graph: reuses memory that a preceding node
 * frees, if that is large enough, which changes the address. Returns CUDA_SUCCESS, also for a
 * clone, or CUDA_ERROR_OUT_OF_MEMORY if there is no device memory. */
CUresult gpc_graph_memory_place(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Returns the memory that starts at the address, without adding a reference. If several allocations
 * share it, returns the one in use or, if none is, the last. Returns NULL if there is none. */
struct gpc_graph_memory *gpc_graph_memory_find(CUdeviceptr address) GP_LOCKED(gpc_graphs_lock);
/* Returns the address of memory for which gpc_graph_memory_place() has succeeded. */
CUdeviceptr gpc_graph_memory_address(const struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
/* The same, of the memory of an allocation or free node of a graph. */
CUdeviceptr gpc_node_get_memory_address(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);
/* Returns the parameters of the memory of an allocation or free node. accessDescs is NULL. */
CUDA_MEM_ALLOC_NODE_PARAMS gpc_node_get_alloc_params(const struct gpc_node *node)
	GP_LOCKED(gpc_graphs_lock);

/* Returns whether the graph of the application contains a node that frees the memory; at most one
 * node may. */
bool gpc_graph_memory_is_freed(const struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);
/* Stores the value that gpc_graph_memory_is_freed() returns. */
void gpc_graph_memory_set_freed(struct gpc_graph_memory *memory, bool freed)
	GP_LOCKED(gpc_graphs_lock);

/*
 * Called before an executable graph is launched: marks the memory that it allocates as in use, and
 * then the memory that it frees as unused. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE
 * without any effect in two cases: a node allocates memory that is in use, unless auto_free is set;
 * or a node frees memory that is neither in use nor allocated by the graph.
 */
CUresult gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_MEMORY_H */
