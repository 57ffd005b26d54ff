/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds an executable driver graph from a client's plan (protocol/graph_plan.h), which is an
 * encoded list of nodes and edges. The graph's kernels run on the multiprocessors of a partition
 * (device/partition.h).
 *
 * A plan that uses conditional handles or device-updatable nodes is built in its graph root, which
 * is the driver graph that owns these handles and nodes (graph_root.h). A plan has at most one
 * root. A launchable graph is one that kernels may launch.
 *
 * Ownership: the caller owns the plan, which is only read during a call. The caller owns a built
 * graph until it passes the graph to a destroy function.
 * Threads: executor only, with the device current, except gpd_graph_recv() and the destroy
 * functions, which need no current context.
 * Errors: CUresult, CUDA_SUCCESS on success.
 */
#ifndef GPD_GRAPH_BUILD_H
#define GPD_GRAPH_BUILD_H

#include "server/worker/module/image.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_graph_root;
struct gpd_partition;
struct gpd_session;

/* Bytes charged to the session's handle memory per node: about the device memory that a node takes.
 * On an H200, 65 executables of 32 nodes take 8 MiB. */
#define GPD_GRAPH_NODE_COST 4096
/* Bytes charged per edge, which both nodes store, in the graph and in its executable. */
#define GPD_GRAPH_EDGE_COST 64

/* An executable graph. Freed by gpd_graph_destroy_built() or gpd_graph_destroy_built_later(). */
struct gpd_graph_built {
	CUgraphExec driver; /* the executable, owned */
	int device;         /* the worker's number of its device */
	/* Partition of its kernels, a reference; NULL: the whole device. */
	struct gpd_partition *partition;
	/* Driver graph of the graph root in which it was built and which it occupies, borrowed;
	 * NULL: it has no root. */
	CUgraph root;
	/* The graph is not rebuilt on another partition, because device code has driver handles of
	 * it. */
	bool stays;
	/* Value of session->modules->kernels_changed when the graph's kernels were looked up. */
	uint64_t kernels_changed;
	struct gpd_image_uses uses; /* features that its kernels use (module/image.h) */
	/* Name of its last kernel, valid while the kernel's image is loaded; NULL: it has no
	 * kernel. */
	const char *kernel;
	/* bytes charged to the session's handle memory (gpd_graph_charge()) until the graph is
	 * destroyed */
	uint64_t charged;
};

/*
 * Receives the current record's plan, and blocks until it has arrived. Sets *plan_p, which the
 * caller frees with free(), and *size_p. On failure *plan_p is NULL, and *size_p has no meaning.
 * The executor calls it first in each hook whose record has a plan, even if the rest of the record
 * is invalid.
 *
 * CUDA_ERROR_UNKNOWN: the connection has failed.
 * CUDA_ERROR_INVALID_VALUE: the plan is empty, or larger than GP_GRAPH_PLAN_MAX; the latter ends
 * the session.
 * CUDA_ERROR_OUT_OF_MEMORY: the plan was received and discarded.
 */
CUresult gpd_graph_recv(struct gpd_session *session, void **plan_p, size_t *size_p);

/* Charges bytes to the session's handle memory, which is host memory for handles and their objects
 * (ledger/handle_memory.h). If the limit is reached and dropped graphs may still release memory,
 * blocks until a pending wait of the session has completed (gpd_wait_any(), stream/responder.h),
 * and tries again. Returns true; the charge is undone by
 * gpd_handle_memory_remove(&session->handles.memory, bytes). Returns false, without charging
 * anything, if the limit is still reached. */
bool gpd_graph_charge(struct gpd_session *session, uint64_t bytes);

/*
 * Builds an executable graph. plan: size bytes from the client, unchecked. partition: for its
 * kernels, NULL: the whole device; a plan with a root uses the root's partition instead. The graph
 * gets a reference of its own to the partition. The cost is charged before the driver builds
 * anything, because a plan may have a million nodes. Blocks as gpd_graph_charge(),
 * gpd_image_kernel() (module/image.h) for each kernel and, with a root, gpd_graph_root_occupy() and
 * gpd_graph_root_instantiate() do. Returns CUDA_SUCCESS with *built_p set; on failure *built_p is
 * NULL and nothing is charged.
 *
 * CUDA_ERROR_INVALID_VALUE: the plan is invalid, uses memory outside the session, or needs a root
 * that does not exist or belongs to another device.
 * CUDA_ERROR_INVALID_HANDLE: a kernel belongs to no image.
 * CUDA_ERROR_OUT_OF_MEMORY: also if the charge fails.
 * CUDA_ERROR_NOT_SUPPORTED: the plan has a root, and is launchable or does not use every updatable
 * node of the root; or the root still has an executable.
 * Other errors are those of the driver.
 */
CUresult gpd_graph_build(struct gpd_session *session, const void *plan, size_t size, int device,
			 struct gpd_partition *partition, bool launchable,
			 struct gpd_graph_built **built_p);

/*
 * Replaces the content of a launchable graph; the driver's handle stays the same. plan: size bytes
 * from the client, unchecked. The charge stays as it is. Blocks as gpd_image_kernel() does. Returns
 * CUDA_SUCCESS; on failure the graph is unchanged.
 *
 * CUDA_ERROR_INVALID_VALUE: the plan is invalid, has a root, costs more than the bytes charged for
 * the graph, or uses memory outside the session.
 * CUDA_ERROR_INVALID_HANDLE: a kernel belongs to no image.
 * CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: the driver cannot update it.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of the driver.
 */
CUresult gpd_graph_update(struct gpd_session *session, const void *plan, size_t size,
			  struct gpd_graph_built *built);

/*
 * Adds the single node of a plan, a kernel launch, to the root's graph, which may be occupied.
 * plan: size bytes from the client, unchecked. The caller must set *node_p to NULL before. Does not
 * charge anything. Returns CUDA_SUCCESS and sets *node_p, which belongs to that graph. On failure
 * *node_p may be set, too: the caller then destroys the node by cuGraphDestroyNode().
 *
 * CUDA_ERROR_INVALID_VALUE: the plan is not a single valid launch.
 * CUDA_ERROR_INVALID_HANDLE: the kernel belongs to no image.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of the driver.
 */
CUresult gpd_graph_add_kernel(struct gpd_session *session, struct gpd_graph_root *root,
			      const void *plan, size_t size, CUgraphNode *node_p);

/* Returns whether the graph can be launched on this partition without being rebuilt. */
bool gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
		    const struct gpd_partition *partition);

/* Destroys a graph that no work uses, uncharges it and vacates its root, if it has one. Accepts
 * NULL. May make the graph's device current. driver: whether the driver may be called; false, after
 * the GPU contexts were lost, frees only the worker's memory. */
void gpd_graph_destroy_built(struct gpd_session *session, struct gpd_graph_built *built,
			     bool driver);
/* Lets the responder (stream/responder.h) destroy a graph after all launches that may still use it
 * have ended. Does not wait for them. If a wait cannot be added, the graph is destroyed at once.
 * The root of the graph is vacated at once; the memory stays charged until the graph is destroyed.
 * Accepts NULL. The caller must not use the graph afterwards. */
void gpd_graph_destroy_built_later(struct gpd_session *session, struct gpd_graph_built *built);

#endif /* GPD_GRAPH_BUILD_H */
