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

struct gpd_partition;
struct gpd_session;

/* What a node is charged for: of executables of 32 nodes 65 take 8 MiB of an H200's memory. */
#define GPD_GRAPH_NODE_COST 4096

/* An image that a kernel is of, and the number of the library that it had. */
struct gpd_graph_image {
	uint32_t id;
	uint64_t library;
};

/* Plain data; gpd_graph_unbuild() ends it. */
struct gpd_graph_built {
	CUgraphExec driver;
	int device;
	struct gpd_partition *partition; /* a reference, or NULL */
	uint32_t nodes;
	struct gpd_graph_image *images;
	uint32_t image_count;
	struct gpd_image_uses uses; /* of any kernel's */
	const char *kernel;         /* the last one's name, or NULL */
};

/* How many nodes there are; false: it is no plan. */
bool gpd_graph_count(const void *plan, size_t size, uint32_t *count_p);

/* CUDA_ERROR_INVALID_VALUE: it is no plan, or uses memory that is not the session's;
 * CUDA_ERROR_INVALID_HANDLE: a kernel of no image. */
CUresult gpd_graph_build(struct gpd_session *session, const void *plan, size_t size, int device,
			 struct gpd_partition *partition, struct gpd_graph_built *built);

/* Whether it can be launched as it is. */
bool gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
		    const struct gpd_partition *partition);

/* Any thread that has what nobody uses any more.  driver: the driver can still be called. */
void gpd_graph_unbuild(struct gpd_graph_built *built, bool driver);

#endif /* GPD_GRAPH_BUILD_H */
