/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch checks: decide whether the daemon may refuse a launch because of its shape, that is, its
 * clusters or the number of blocks that must run together (cooperative launch).
 *
 * A shape that was accepted once is accepted again, so the launch is posted. For any other shape
 * the caller waits for the reply, and then stores that it was accepted. The limit for a cooperative
 * launch is the number of blocks that fit on a multiprocessor times the number of multiprocessors;
 * both are queried once.
 *
 * Ownership: a check is the caller's; its context and function must outlive it.
 * Threads: any thread may call.
 */
#ifndef GPC_LAUNCH_SHAPE_H
#define GPC_LAUNCH_SHAPE_H

#include "client/module/image.h"
#include "client/module/launch.h"

struct gp_args_gpLaunch;

enum gpc_kernel_query_kind {
	GPC_KERNEL_QUERY_LAUNCH = 1, /* reply: the largest number of blocks that was accepted */
	GPC_KERNEL_QUERY_BLOCKS,
	GPC_KERNEL_QUERY_SHARED,
	GPC_KERNEL_QUERY_CLUSTERS, /* and the next value: plus `what` of gpOccupancyCluster */
	GPC_KERNEL_QUERY_MULTIPROCESSORS = GPC_KERNEL_QUERY_CLUSTERS + 2, /* not about a kernel */
};

#define GPC_KERNEL_QUERY_WORDS 16
#define GPC_KERNEL_QUERY_CLUSTER 4 /* index of the cluster dimension in the words of a shape */
#define GPC_KERNEL_QUERY_GRID 12   /* index of the grid dimension, followed by the carveout */
#define GPC_KERNEL_QUERY_SETTINGS 8

/* A query about a kernel (client/base/query_cache.h), whose reply is a number. */
struct gpc_kernel_query {
	/* Sum of the revisions of the session (its share of the GPU) and of the preferred cache of
	 * the image. */
	uint64_t revision;
	uint32_t what;
	uint32_t kernel; /* index in the image */
	int32_t device;
	uint32_t settings_known;                     /* bit i: settings[i] is known */
	int32_t settings[GPC_KERNEL_QUERY_SETTINGS]; /* of the kernel: CUfunction_attribute 8 to 15
						      */
	uint32_t words[GPC_KERNEL_QUERY_WORDS];      /* other parameters of the query */
};

/* Makes the daemon report changes of the session's share of the GPU. Called before a query whose
 * reply depends on it. Returns false if the daemon cannot report them, so that the reply must not
 * be cached. */
bool gpc_share_watch(struct gpc_context *context);

/* Look up and store a reply in the cache of the image. */
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

/* Initialize a query about a kernel with its current settings, and add the shape of a launch. */
void gpc_kernel_query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
			   const struct gpc_context *context, const struct gpc_function *function);
void gpc_kernel_query_set_shape(struct gpc_kernel_query *query, const CUlaunchConfig *config,
				const struct gpc_launch_attributes *attributes);
/* Initializes a query for the number of blocks of `threads` threads that fit on a
 * multiprocessor. */
void gpc_kernel_query_init_blocks(struct gpc_kernel_query *query, const struct gpc_context *context,
				  const struct gpc_function *function, int threads, uint64_t shared,
				  unsigned int flags);

struct gpc_launch_shape {
	struct gpc_context *context;
	struct gpc_function *function;
	struct gpc_kernel_query query;
	uint64_t blocks;
	uint64_t shared;  /* bytes of dynamic shared memory per block */
	uint32_t threads; /* per block */
	uint32_t source;  /* of the multiprocessors: wire ID of a green context; 0: the session */
	bool count_together; /* only the number of blocks can cause a refusal */
	bool needed;         /* the daemon may refuse it: wait for the reply */
};

/* Initializes a check from what is already known, without a query. source: as in the struct. */
void gpc_launch_shape_init(struct gpc_launch_shape *check, struct gpc_context *context,
			   struct gpc_function *function, const CUlaunchConfig *config,
			   const struct gpc_launch_attributes *attributes, uint32_t source);
/* Queries how many blocks can run together, if that decides and is not known. */
void gpc_launch_shape_query(struct gpc_launch_shape *check);
/* Stores that the daemon has accepted the launch. */
void gpc_launch_shape_store(const struct gpc_launch_shape *check);

/* The needed checks of several launches. Initialized with zeros; the caller frees the list. */
struct gpc_launch_shapes {
	struct gpc_launch_shape *list;
	size_t count, room;
};

/* Adds the check of one more launch, if it is needed. Accepts NULL. Errors:
 * CUDA_ERROR_OUT_OF_MEMORY and those of looking up the function. */
CUresult gpc_launch_shapes_add(struct gpc_launch_shapes *shapes, struct gpc_context *context,
			       CUfunction function, const struct gp_args_gpLaunch *args,
			       const struct gpc_launch_attributes *attributes);
/* Calls gpc_launch_shape_query() for each check, and removes those that are no longer needed. */
void gpc_launch_shapes_query(struct gpc_launch_shapes *shapes);
/* Stores that the daemon has accepted all of them. */
void gpc_launch_shapes_store(const struct gpc_launch_shapes *shapes);

#endif /* GPC_LAUNCH_SHAPE_H */
