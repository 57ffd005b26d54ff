/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch checks: decide whether the daemon may refuse a launch because of its shape, that is, its
 * clusters or the number of blocks that must run together (cooperative launch).
 *
 * A shape that was accepted once is accepted again, so the launch is posted (sent without waiting).
 * For any other shape the caller waits for the reply, and then stores that it was accepted. The
 * limit for a cooperative launch is the number of blocks that fit on a multiprocessor times the
 * number of multiprocessors; both are queried once.
 *
 * Ownership: a check is the caller's and needs no freeing; its context and function must outlive
 * it.
 * Threads: any thread may call; one thread uses a check at a time. Only gpc_launch_shape_query()
 * and gpc_launch_shapes_query() wait for the daemon.
 */
#ifndef GPC_LAUNCH_SHAPE_H
#define GPC_LAUNCH_SHAPE_H

#include "client/module/image.h"
#include "client/module/launch.h"

struct gp_args_gpLaunch;

/* Replies about kernels that are cached in the image. */
enum gpc_kernel_query_kind {
	GPC_KERNEL_QUERY_LAUNCH = 1, /* the largest number of blocks of a shape that was accepted */
	/* number of blocks that fit on a multiprocessor */
	GPC_KERNEL_QUERY_BLOCKS,
	/* bytes of dynamic shared memory that are available per block */
	GPC_KERNEL_QUERY_SHARED,
	GPC_KERNEL_QUERY_CLUSTERS, /* the first of two values: GPC_KERNEL_QUERY_CLUSTERS + the
				      `what` of gpOccupancyCluster */
	GPC_KERNEL_QUERY_MULTIPROCESSORS =
		GPC_KERNEL_QUERY_CLUSTERS + 2, /* number of multiprocessors; not about a kernel */
};

#define GPC_KERNEL_QUERY_WORDS 16
#define GPC_KERNEL_QUERY_CLUSTER 4 /* index of the cluster dimension in `words` of a shape */
#define GPC_KERNEL_QUERY_GRID 12   /* index of the grid dimension, followed by the carveout */
#define GPC_KERNEL_QUERY_SETTINGS 8

/* Key of a cached reply about a kernel (client/base/query_cache.h); the reply is a number. Padding
 * must be zero. */
struct gpc_kernel_query {
	/* Sum of the revision of the session, which changes with its share of the GPU's
	 * multiprocessors, and of the number of changes to preferred cache configurations in the
	 * image. */
	uint64_t revision;
	/* enum gpc_kernel_query_kind */
	uint32_t what;
	uint32_t kernel; /* index of the kernel in the image */
	/* ordinal of the context's device */
	int32_t device;
	uint32_t settings_known;                     /* bit i: settings[i] is known */
	int32_t settings[GPC_KERNEL_QUERY_SETTINGS]; /* kernel attributes 8 to 15
							(CUfunction_attribute) */
	uint32_t words[GPC_KERNEL_QUERY_WORDS];      /* other parameters of the query */
};

/* Makes the daemon report changes of the session's share of the GPU (the multiprocessors that it
 * may use), without waiting. Called before a query whose reply depends on it. Returns false if that
 * fails; then the reply must not be cached. */
bool gpc_share_watch(struct gpc_context *context);

/* Looks up a reply in the cache of the image. Returns false, with *answer_p unchanged, if it is not
 * cached. */
static inline bool
gpc_kernel_query_find(struct gpc_image *image, const struct gpc_kernel_query *query,
		      uint64_t *answer_p)
{
	return gpc_query_cache_find(&image->answers, query, sizeof(*query), answer_p,
				    sizeof(*answer_p));
}

/* Stores a reply in the cache of the image. */
static inline void
gpc_kernel_query_put(struct gpc_image *image, const struct gpc_kernel_query *query, uint64_t answer)
{
	gpc_query_cache_put(&image->answers, query, sizeof(*query), &answer, sizeof(answer));
}

/* Initializes a query about a kernel with its current settings. */
void gpc_kernel_query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
			   const struct gpc_context *context, const struct gpc_function *function);
/* Stores the shape of a launch in query->words. */
void gpc_kernel_query_set_shape(struct gpc_kernel_query *query, const CUlaunchConfig *config,
				const struct gpc_launch_attributes *attributes);
/* Initializes a query for the number of blocks that fit on a multiprocessor. threads: threads per
 * block; shared: bytes of dynamic shared memory per block; flags: those of the occupancy query. */
void gpc_kernel_query_init_blocks(struct gpc_kernel_query *query, const struct gpc_context *context,
				  const struct gpc_function *function, int threads, uint64_t shared,
				  unsigned int flags);

/* A launch check. */
struct gpc_launch_shape {
	struct gpc_context *context;
	struct gpc_function *function;
	struct gpc_kernel_query query;
	/* number of blocks in the grid */
	uint64_t blocks;
	uint64_t shared;     /* bytes of dynamic shared memory per block */
	uint32_t threads;    /* threads per block */
	uint32_t source;     /* source of the multiprocessors: ID of a green context in messages; 0:
				those of the session */
	bool count_together; /* only the number of blocks that run together can cause a refusal */
	bool needed; /* the daemon may refuse the launch, so the caller waits for the reply */
};

/* Initializes a check from the cached replies, without a query. If check->needed is false, no other
 * member is initialized. source: as in the struct. */
void gpc_launch_shape_init(struct gpc_launch_shape *check, struct gpc_context *context,
			   struct gpc_function *function, const CUlaunchConfig *config,
			   const struct gpc_launch_attributes *attributes, uint32_t source);
/* Queries how many blocks can run together, if that alone decides and is not cached, and waits for
 * the replies. Clears check->needed if the launch cannot be refused. */
void gpc_launch_shape_query(struct gpc_launch_shape *check);
/* Stores that the daemon has accepted the launch. Called for a check with `needed` set. */
void gpc_launch_shape_store(const struct gpc_launch_shape *check);

/* The needed checks of several launches. Initially zero; the caller frees the list. */
struct gpc_launch_shapes {
	struct gpc_launch_shape *list;
	size_t count, room;
};

/* Adds the check of one more launch, if it is needed. shapes: NULL: has no effect. Returns
 * CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, or the errors of looking up the function; the list is
 * then unchanged. */
CUresult gpc_launch_shapes_add(struct gpc_launch_shapes *shapes, struct gpc_context *context,
			       CUfunction function, const struct gp_args_gpLaunch *args,
			       const struct gpc_launch_attributes *attributes);
/* Calls gpc_launch_shape_query() for each check, and removes those that are no longer needed from
 * the list. May wait for replies. */
void gpc_launch_shapes_query(struct gpc_launch_shapes *shapes);
/* Stores that the daemon has accepted all launches in the list. */
void gpc_launch_shapes_store(const struct gpc_launch_shapes *shapes);

#endif /* GPC_LAUNCH_SHAPE_H */
