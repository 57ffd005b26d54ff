/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds an executable driver graph from a client's plan (protocol/graph_plan.h), on the
 * multiprocessors of a partition (device/partition.h).
 *
 * A plan that uses conditional handles or device-updatable nodes is built in the driver graph that
 * owns them, its graph root (graph_root.h).
 *
 * Ownership: the caller owns the plan. It owns a built graph until a destroy function is called.
 * Threads: executor only, with the device current.
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

/* Bytes charged per node: on an H200, 65 executables of 32 nodes take 8 MiB of device memory. */
#define GPD_GRAPH_NODE_COST 4096
/* Bytes charged per edge, which both nodes store, in the graph and in its executable. */
#define GPD_GRAPH_EDGE_COST 64

/* An executable graph. Freed by gpd_graph_destroy_built() or gpd_graph_destroy_built_later(). */
struct gpd_graph_built {
	CUgraphExec driver;
	int device;
	/* Partition of its kernels, a reference; NULL: the whole device. */
	struct gpd_partition *partition;
	/* Driver graph of the root that it was built in and occupies; NULL: it has no root. */
	CUgraph root;
	/* It is not rebuilt on another partition, because device code has driver handles of it. */
	bool stays;
	/* Value of kernels_changed of the session when its kernels were looked up. */
	uint64_t kernels_changed;
	struct gpd_image_uses uses; /* features that its kernels use */
	/* Name of its last kernel, valid while the kernel's image is loaded; NULL: it has no
	 * kernel. */
	const char *kernel;
	uint64_t charged; /* bytes charged to the session's name memory until it is destroyed */
};

/* Receives the current record's plan, and blocks until it has arrived. Sets *plan_p, which the
 * caller frees with free(), and *size_p. On failure *plan_p is NULL; a plan that is too large also
 * ends the session. */
CUresult gpd_graph_recv(struct gpd_session *session, void **plan_p, size_t *size_p);

/* Charges bytes to the session's name memory (ledger/name_memory.h). Waits while graphs that are
 * being destroyed may release memory. Returns true; or false, without charging anything, if the
 * session's limit is reached. */
bool gpd_graph_charge(struct gpd_session *session, uint64_t bytes);

/*
 * Builds an executable graph. partition: for its kernels, NULL: the whole device; a plan with a
 * root uses the root's partition instead. launchable: kernels may launch it. The cost is charged
 * before the driver builds anything, because a plan may have a million nodes. Returns CUDA_SUCCESS
 * with *built_p set; on failure *built_p is NULL and nothing is charged.
 *
 * CUDA_ERROR_INVALID_VALUE: the plan is invalid or uses memory outside the session.
 * CUDA_ERROR_INVALID_HANDLE: a kernel belongs to no image.
 * CUDA_ERROR_OUT_OF_MEMORY: also if the charge fails.
 * CUDA_ERROR_NOT_SUPPORTED: the root already has an executable, or the plan has a root and is
 * launchable.
 */
CUresult gpd_graph_build(struct gpd_session *session, const void *plan, size_t size, int device,
			 struct gpd_partition *partition, bool launchable,
			 struct gpd_graph_built **built_p);

/* Replaces the content of a graph that kernels may launch; the driver's handle stays the same.
 * Fails as gpd_graph_build(), also if the plan costs more than the present one
 * (CUDA_ERROR_INVALID_VALUE), and with CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE if the driver cannot
 * update it. On failure the graph is unchanged. */
CUresult gpd_graph_update(struct gpd_session *session, const void *plan, size_t size,
			  struct gpd_graph_built *built);

/* Adds the single node of a plan, a kernel launch, to the root's graph, and sets *node_p, which
 * belongs to that graph. CUDA_ERROR_INVALID_VALUE: the plan is anything else. */
CUresult gpd_graph_add_kernel(struct gpd_session *session, struct gpd_graph_root *root,
			      const void *plan, size_t size, CUgraphNode *node_p);

/* Returns whether the graph can be launched on this partition without being rebuilt. */
bool gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
		    const struct gpd_partition *partition);

/* Destroys a graph that is no longer in use, uncharges it and vacates its root. Accepts NULL.
 * driver: the driver can still be called. */
void gpd_graph_destroy_built(struct gpd_session *session, struct gpd_graph_built *built,
			     bool driver);
/* Destroys a graph after all launches that may still use it have ended, without waiting for them.
 * Its root is vacated at once; its memory stays charged until then. Accepts NULL. The caller must
 * not use the graph afterwards. */
void gpd_graph_destroy_built_later(struct gpd_session *session, struct gpd_graph_built *built);

#endif /* GPD_GRAPH_BUILD_H */
