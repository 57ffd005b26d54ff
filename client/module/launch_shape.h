/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch checks: decide whether the daemon may refuse a launch because of its shape, that is, its
 * clusters or the number of blocks that must run at the same time (cooperative launch).
 *
 * A shape that was accepted once is accepted again, so the launch is posted (sent without waiting).
 * For any other shape the caller waits for the reply to the launch, and then stores that the shape
 * was accepted. The limit for a cooperative launch is the number of blocks that fit on a
 * multiprocessor times the number of multiprocessors; both are queried once.
 *
 * Ownership: a check is the caller's and needs no freeing; its context and function must outlive
 * it.
 * Threads: any thread may call; one thread uses a check at a time. Only gpc_launch_shape_query()
 * and gpc_launch_shapes_query() wait for a reply of the daemon.
 */
#ifndef GPC_LAUNCH_SHAPE_H
#define GPC_LAUNCH_SHAPE_H

#include "client/module/image.h"
#include "client/module/launch.h"

struct gp_args_gpLaunch;

/* Kinds of replies about kernels that are cached in the image (image->answers). */
enum gpc_kernel_query_kind {
	GPC_KERNEL_QUERY_LAUNCH = 1, /* the largest number of blocks of a shape that was accepted */
	/* number of blocks that fit on a multiprocessor */
	GPC_KERNEL_QUERY_BLOCKS,
	/* bytes of dynamic shared memory that are available per block */
	GPC_KERNEL_QUERY_SHARED,
	GPC_KERNEL_QUERY_CLUSTERS, /* two values: this + the `what` of gpOccupancyCluster. The reply
				      also contains the CUresult, in the upper 32 bits. */
	GPC_KERNEL_QUERY_MULTIPROCESSORS =
		GPC_KERNEL_QUERY_CLUSTERS + 2, /* number of multiprocessors; not about a kernel */
};

#define GPC_KERNEL_QUERY_WORDS 16  /* length of `words` */
#define GPC_KERNEL_QUERY_CLUSTER 4 /* index of the cluster dimension in `words` of a shape */
/* index of the grid dimension, which the carveout follows; in the key of a launch check, the
 * source */
#define GPC_KERNEL_QUERY_GRID 12
#define GPC_KERNEL_QUERY_SETTINGS 8 /* length of `settings` */

/* Key of a cached reply about a kernel (client/base/query_cache.h); the reply is a uint64_t. Unused
 * members must be zero. */
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
	uint32_t words[GPC_KERNEL_QUERY_WORDS];      /* other parameters of the query, by `what` */
};

/* Requests that the daemon report changes of the session's share of the GPU (the multiprocessors
 * that it may use), unless that was done before. Called before a query whose reply depends on the
 * share, so that a cached reply becomes outdated with the share. Does not wait. Returns false if
 * the request cannot be posted; then the reply must not be cached. */
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

/* Stores a reply in the cache of the image; if out of memory, stores nothing. */
static inline void
gpc_kernel_query_put(struct gpc_image *image, const struct gpc_kernel_query *query, uint64_t answer)
{
	gpc_query_cache_put(&image->answers, query, sizeof(*query), &answer, sizeof(answer));
}

/* Initializes a query about a kernel with its current settings, and `words` with zeros. */
void gpc_kernel_query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
			   const struct gpc_context *context, const struct gpc_function *function);
/* Stores the shape of a launch in query->words. */
void gpc_kernel_query_set_shape(struct gpc_kernel_query *query, const CUlaunchConfig *config,
				const struct gpc_launch_attributes *attributes);
/* Initializes a query for the number of blocks that fit on a multiprocessor. threads: threads per
 * block. shared: bytes of dynamic shared memory per block. flags: those of
 * cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(). */
void gpc_kernel_query_init_blocks(struct gpc_kernel_query *query, const struct gpc_context *context,
				  const struct gpc_function *function, int threads, uint64_t shared,
				  unsigned int flags);

/* A launch check. */
struct gpc_launch_shape {
	struct gpc_context *context;
	struct gpc_function *function; /* in the session of the context */
	struct gpc_kernel_query query; /* key of the cached reply about this shape */
	/* number of blocks in the grid */
	uint64_t blocks;
	uint64_t shared;     /* bytes of dynamic shared memory per block */
	uint32_t threads;    /* threads per block */
	uint32_t source;     /* source of the multiprocessors: wire ID of a green context; 0: the
				session's share */
	bool count_together; /* only the number of blocks that must run at the same time can cause a
				refusal */
	bool needed; /* the daemon may refuse the launch, so the caller waits for the reply */
};

/* Initializes a check from the cached replies, without a query. If the launch has neither the
 * cooperative attribute nor clusters, shape->needed is false and no other member is initialized.
 * source: as in the struct. */
void gpc_launch_shape_init(struct gpc_launch_shape *shape, struct gpc_context *context,
			   struct gpc_function *function, const CUlaunchConfig *config,
			   const struct gpc_launch_attributes *attributes, uint32_t source);
/* Queries how many blocks can run at the same time, if shape->needed and shape->count_together are
 * set and the number is not cached, and waits for the replies. Clears shape->needed, and stores
 * that the shape is accepted, if the launch cannot be refused. If a query fails, shape->needed
 * remains set. */
void gpc_launch_shape_query(struct gpc_launch_shape *shape);
/* Stores that the daemon has accepted the launch. Called after the reply to the launch, for a check
 * with `needed` set. */
void gpc_launch_shape_store(const struct gpc_launch_shape *shape);

/* The needed checks of several launches, such as those of a graph. Initially zero; the caller frees
 * `list` with free(). */
struct gpc_launch_shapes {
	struct gpc_launch_shape *list;
	size_t count, capacity; /* length and allocated length of the list */
};

/* Adds the check of one more launch, if it is needed. token: its CUfunction or CUkernel. args: its
 * shape. Has no effect if shapes is NULL. Returns CUDA_SUCCESS; after an error the list is
 * unchanged. Errors: CUDA_ERROR_OUT_OF_MEMORY, and those of gpc_function_lookup() and
 * gpc_function_get_twin(). */
CUresult gpc_launch_shapes_add(struct gpc_launch_shapes *shapes, struct gpc_context *context,
			       CUfunction token, const struct gp_args_gpLaunch *args,
			       const struct gpc_launch_attributes *attributes);
/* Calls gpc_launch_shape_query() for each check, and removes those that are no longer needed from
 * the list. May wait for replies. */
void gpc_launch_shapes_query(struct gpc_launch_shapes *shapes);
/* Stores that the daemon has accepted all launches in the list, after their replies. */
void gpc_launch_shapes_store(const struct gpc_launch_shapes *shapes);

#endif /* GPC_LAUNCH_SHAPE_H */
