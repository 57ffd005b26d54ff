/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a client has sent to an executable graph of the driver, on a partition's
 * multiprocessors.  Executor only, with the device current.
 */
#ifndef GPD_GRAPH_BUILD_H
#define GPD_GRAPH_BUILD_H

#include "server/worker/image/image.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_graph_root;
struct gpd_partition;
struct gpd_session;

/* What a node is charged for: of executables of 32 nodes 65 take 8 MiB of an H200's memory. */
#define GPD_GRAPH_NODE_COST 4096
/* An edge: both nodes know it, in the graph and in its executable. */
#define GPD_GRAPH_EDGE_COST 64

/* gpd_graph_destroy_built() ends it. */
struct gpd_graph_built {
	CUgraphExec driver;
	int device;
	struct gpd_partition *partition; /* a reference, or NULL */
	CUgraph root; /* that it was made in and occupies; NULL: it was made for itself */
	bool stays;   /* on this partition, whatever the session has now: device code has the
		       * driver's value of it, of its conditions or of its nodes */
	uint64_t kernels_changed;   /* the session's, when its kernels were looked up */
	struct gpd_image_uses uses; /* of any kernel's */
	const char *kernel;         /* the last one's name, or NULL */
	uint64_t charged;           /* of the session's name memory, until it is unbuilt */
};

/* What the client has sent: *plan_p is the caller's to free, NULL where it fails. */
CUresult gpd_graph_recv(struct gpd_session *session, void **plan_p, size_t *size_p);

/* Charges the session's name memory.  Blocks while graphs that leave would make room; false: the
 * session may have no more. */
bool gpd_graph_charge(struct gpd_session *session, uint64_t bytes);

/*
 * CUDA_ERROR_INVALID_VALUE: it is no plan, or uses memory that is not the session's;
 * CUDA_ERROR_INVALID_HANDLE: a kernel of no image; CUDA_ERROR_OUT_OF_MEMORY: also if it
 * cannot be charged, which is done before the driver makes it: a plan may have a million nodes;
 * CUDA_ERROR_NOT_SUPPORTED: there is an executable of the same root.
 */
CUresult gpd_graph_build(struct gpd_session *session, const void *plan, size_t size, int device,
			 struct gpd_partition *partition, bool launchable,
			 struct gpd_graph_built **built_p);

/* Gives one that kernels may launch another content, under the same value of the driver's.  Errors
 * as before, and CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: the driver cannot; then it is as it was. */
CUresult gpd_graph_update(struct gpd_session *session, const void *plan, size_t size,
			  struct gpd_graph_built *built);

/* Gives the root's graph the one node of a plan, a launch. */
CUresult gpd_graph_add_kernel(struct gpd_session *session, struct gpd_graph_root *root,
			      const void *plan, size_t size, CUgraphNode *node_p);

/* Whether it can be launched as it is. */
bool gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
		    const struct gpd_partition *partition);

/* When nothing uses it any more; NULL is allowed.  driver: the driver can still be called. */
void gpd_graph_destroy_built(struct gpd_session *session, struct gpd_graph_built *built,
			     bool driver);
/* The same behind the launches that may still use it. */
void gpd_graph_destroy_built_later(struct gpd_session *session, struct gpd_graph_built *built);

#endif /* GPD_GRAPH_BUILD_H */
