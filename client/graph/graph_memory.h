/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graph nodes allocate and free (cuGraphAddMemAllocNode).
 *
 * Memory gets its address when its allocation node is added to a graph. After that it counts
 * against the session's quota, until no node refers to it, neither of a graph nor of an executable
 * graph, and it is not in use. Two allocations of one graph share an address if a node frees the
 * one before the other is allocated. So a launch allocates nothing: it only marks memory as in use
 * (allocated by a launch, not freed yet) or unused. The application may free memory in use with
 * cuMemFree() or cuMemFreeAsync().
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
 * Allocates the memory of a node with these parameters, which are copied. Called before the node is
 * added; gpc_graph_memory_place() follows. On success *memory_p has one reference, which the node's
 * parameters take over or gpc_graph_memory_unref() releases; on failure *memory_p is unchanged.
 * Called without the lock, which it acquires at the end, as the daemon may have to provide memory;
 * may wait for it. Uses the current context if that is on the memory's device, otherwise the
 * device's primary context, which it activates.
 * Errors: CUDA_ERROR_INVALID_VALUE for invalid parameters; CUDA_ERROR_NOT_SUPPORTED for exportable
 * memory and for access by another device; CUDA_ERROR_OUT_OF_MEMORY if the client has no memory for
 * its own data; the errors of gpc_enter() (client/context/context.h) and of allocating. Missing
 * device memory is not an error here: a node that comes before this one may free some, and
 * otherwise gpc_graph_memory_place() reports it.
 */
CUresult gpc_graph_memory_create(const CUDA_MEM_ALLOC_NODE_PARAMS *given,
				 struct gpc_graph_memory **memory_p);
/* Adds a reference and returns the memory. */
struct gpc_graph_memory *gpc_graph_memory_ref(struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
/* Releases a reference. With the last one the memory is queued to be freed when the lock is
 * released (user_object.h), unless it is in use: then the application frees it. */
void gpc_graph_memory_unref(struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);

/* Called after an allocation node was added to its graph. Reuses memory that a preceding node of
 * this graph frees, if it is large enough; this changes the address. Has no effect for the node of
 * a cloned graph, which shares the memory of the original node. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY if there is no device memory. */
CUresult gpc_graph_memory_place(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Returns the memory that starts at the address, without adding a reference. Of several allocations
 * that share the address, returns the one in use or, if none is, the last one. Returns NULL if no
 * graph memory starts there, or if its context was reset. */
struct gpc_graph_memory *gpc_graph_memory_find(CUdeviceptr address) GP_LOCKED(gpc_graphs_lock);
/* Returns the address of memory for which gpc_graph_memory_place() has succeeded. */
CUdeviceptr gpc_graph_memory_address(const struct gpc_graph_memory *memory)
	GP_LOCKED(gpc_graphs_lock);
/* Like gpc_graph_memory_address(), for the memory of an allocation or free node. */
CUdeviceptr gpc_node_get_memory_address(const struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);
/* Returns the parameters of the memory of an allocation or free node. accessDescs is NULL and
 * accessDescCount 0: gpc_graph_memory_create() accepts descriptors of the memory's own device only,
 * which always has access. */
CUDA_MEM_ALLOC_NODE_PARAMS gpc_node_get_alloc_params(const struct gpc_node *node)
	GP_LOCKED(gpc_graphs_lock);

/* Returns whether a node that the application has added or captured frees the memory. At most one
 * such node may exist; its copies in executable graphs do not count. */
bool gpc_graph_memory_is_freed(const struct gpc_graph_memory *memory) GP_LOCKED(gpc_graphs_lock);
/* Stores the value that gpc_graph_memory_is_freed() returns. Called when a free node is added
 * (true) or destroyed (false). */
void gpc_graph_memory_set_freed(struct gpc_graph_memory *memory, bool freed)
	GP_LOCKED(gpc_graphs_lock);

/* Called before an executable graph is launched, with its private copy of the graph: marks the
 * memory that it allocates as in use, and then the memory that it frees as unused. This is not
 * undone if the launch fails afterwards. auto_free: as
 * CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, memory that an earlier launch has left in use
 * may be allocated again. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE without any effect in
 * two cases: a node allocates memory that is in use and auto_free is not set, or a node frees
 * memory that is neither in use nor allocated by this graph. */
CUresult gpc_graph_memory_launch(const struct gpc_graph *graph, bool auto_free)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_MEMORY_H */
