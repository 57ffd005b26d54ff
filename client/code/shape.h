/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a daemon may refuse a launch for its shape: one of clusters, or of blocks that must run
 * together.  What has been accepted is accepted again, so the caller posts it; anything
 * else it waits for, and says then that it was accepted.  Of blocks that run together so many are
 * accepted as fit on a multiprocessor, times the multiprocessors: both are asked once.  A check is
 * the caller's, and names context and function, which outlive it.  Any thread.
 */
#ifndef GPC_SHAPE_H
#define GPC_SHAPE_H

#include "client/code/image.h"
#include "client/code/launch.h"

struct gp_args_gpLaunch;

enum gpc_kernel_query_kind {
	GPC_KERNEL_QUERY_LAUNCH = 1, /* answer: the most blocks that were accepted */
	GPC_KERNEL_QUERY_BLOCKS,
	GPC_KERNEL_QUERY_SHARED,
	GPC_KERNEL_QUERY_CLUSTERS, /* and the next one: what of gpOccupancyCluster */
	GPC_KERNEL_QUERY_MULTIPROCESSORS = GPC_KERNEL_QUERY_CLUSTERS + 2, /* of no kernel */
};

#define GPC_KERNEL_QUERY_WORDS 16
#define GPC_KERNEL_QUERY_CLUSTER 4 /* of a shape, where the cluster stands, and the grid */
#define GPC_KERNEL_QUERY_GRID 12   /* and behind it the carveout */
#define GPC_KERNEL_QUERY_SETTINGS 8

/* A query about a kernel (client/base/query_cache.h), whose reply is a number. */
struct gpc_kernel_query {
	/* Of the session (its share of the GPU) and of the preferred cache of the image. */
	uint64_t revision;
	uint32_t what;
	uint32_t kernel; /* index in the image */
	int32_t device;
	uint32_t settings_known;                     /* bit i: settings[i] is known */
	int32_t settings[GPC_KERNEL_QUERY_SETTINGS]; /* of the kernel: CUfunction_attribute 8 … 15
						      */
	uint32_t words[GPC_KERNEL_QUERY_WORDS];      /* what else was asked */
};

/* Before a query whose reply depends on the session's share of the GPU: the daemon reports changes
 * of that from now on.  false: it cannot, so the reply is not stored. */
bool gpc_share_watch(struct gpc_context *context);

static inline bool
gpc_kernel_query_find(struct gpc_image *image, const struct gpc_kernel_query *query,
		      uint64_t *answer_p)
{
	return gpc_query_cache_find(&image->answers, query, sizeof(*query), answer_p,
				    sizeof(*answer_p));
}

static inline void
gpc_kernel_query_put(struct gpc_image *image, const struct gpc_kernel_query *query, uint64_t answer)
{
	gpc_query_cache_put(&image->answers, query, sizeof(*query), &answer, sizeof(answer));
}

/* A question about a kernel, as it is set up now; and what it says of a launch's shape. */
void gpc_kernel_query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
			   const struct gpc_context *context, const struct gpc_function *function);
void gpc_kernel_query_set_shape(struct gpc_kernel_query *query, const CUlaunchConfig *config,
				const struct gpc_launch_attributes *attributes);
/* How many blocks of so many threads fit on a multiprocessor. */
void gpc_kernel_query_init_blocks(struct gpc_kernel_query *query, const struct gpc_context *context,
				  const struct gpc_function *function, int threads, uint64_t shared,
				  unsigned int flags);

struct gpc_launch_shape {
	struct gpc_context *context;
	struct gpc_function *function;
	struct gpc_kernel_query query;
	uint64_t blocks;
	uint64_t shared;     /* bytes of dynamic shared memory for each */
	uint32_t threads;    /* of a block */
	uint32_t source;     /* of the multiprocessors: a green context, 0: the session */
	bool count_together; /* it is refused for the number of its blocks alone */
	bool needed;         /* to be waited for */
};

/* Without asking the daemon. */
void gpc_launch_shape_init(struct gpc_launch_shape *check, struct gpc_context *context,
			   struct gpc_function *function, const CUlaunchConfig *config,
			   const struct gpc_launch_attributes *attributes, uint32_t source);
/* Asks how many blocks may run together, where that decides and is not known. */
void gpc_launch_shape_query(struct gpc_launch_shape *check);
/* The daemon has accepted what was needed. */
void gpc_launch_shape_store(const struct gpc_launch_shape *check);

/* Those of several launches that are needed.  Zeroed there are none; the caller frees the list. */
struct gpc_launch_shapes {
	struct gpc_launch_shape *list;
	size_t count, room;
};

/* Looks at one more launch; accepts NULL. */
CUresult gpc_launch_shapes_add(struct gpc_launch_shapes *shapes, struct gpc_context *context,
			       CUfunction function, const struct gp_args_gpLaunch *args,
			       const struct gpc_launch_attributes *attributes);
/* gpc_launch_shape_query() for each; those that need not be waited for go. */
void gpc_launch_shapes_query(struct gpc_launch_shapes *shapes);
/* The daemon has accepted all of them. */
void gpc_launch_shapes_store(const struct gpc_launch_shapes *shapes);

#endif /* GPC_SHAPE_H */
