/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds an executable driver graph from a client's plan (protocol/graph_plan.h), on the
 * multiprocessors of a partition.
 *
 * Threads: executor only, with the device current.
 * Errors: CUresult.
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
	struct gpd_partition *partition; /* a reference, or NULL */
	CUgraph root;             /* graph of the root that it was built in and occupies, or NULL */
	bool stays;               /* does not move: device code has driver handles of it */
	uint64_t kernels_changed; /* session->kernels_changed when its kernels were looked up */
	struct gpd_image_uses uses; /* of all its kernels */
	const char *kernel;         /* name of the last one, or NULL */
	uint64_t charged; /* bytes charged to the session's name memory until it is destroyed */
};

/* Receives the current record's plan. The caller frees *plan_p, which is NULL on failure. */
CUresult gpd_graph_recv(struct gpd_session *session, void **plan_p, size_t *size_p);

/* Charges bytes to the session's name memory. Waits while graphs being destroyed may make room.
 * false: the session's limit is reached. */
bool gpd_graph_charge(struct gpd_session *session, uint64_t bytes);

/*
 * Builds an executable graph. launchable: kernels may launch it. The cost is charged before the
 * driver builds anything, because a plan may have a million nodes.
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
 * Errors as above, and CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE if the driver cannot; the graph is then
 * unchanged. */
CUresult gpd_graph_update(struct gpd_session *session, const void *plan, size_t size,
			  struct gpd_graph_built *built);

/* Adds the single node of a plan, a kernel launch, to the root's graph. */
CUresult gpd_graph_add_kernel(struct gpd_session *session, struct gpd_graph_root *root,
			      const void *plan, size_t size, CUgraphNode *node_p);

/* Whether the graph can be launched without being rebuilt. */
bool gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
		    const struct gpd_partition *partition);

/* Destroys a graph that is no longer in use. Accepts NULL. driver: the driver can still be
 * called. */
void gpd_graph_destroy_built(struct gpd_session *session, struct gpd_graph_built *built,
			     bool driver);
/* The same after all launches that may still use it; the memory stays charged until then. Accepts
 * NULL. */
void gpd_graph_destroy_built_later(struct gpd_session *session, struct gpd_graph_built *built);

#endif /* GPD_GRAPH_BUILD_H */
