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

enum gpc_question_what {
	GPC_QUESTION_LAUNCH = 1, /* answer: the most blocks that were accepted */
	GPC_QUESTION_BLOCKS,
	GPC_QUESTION_SHARED,
	GPC_QUESTION_CLUSTERS, /* and the next one: what of gpOccupancyCluster */
	GPC_QUESTION_MULTIPROCESSORS = GPC_QUESTION_CLUSTERS + 2, /* of no kernel */
};

#define GPC_QUESTION_WORDS 16
#define GPC_QUESTION_CLUSTER 4 /* of a shape, where the cluster stands, and the grid */
#define GPC_QUESTION_GRID 12   /* and behind it the carveout */
#define GPC_QUESTION_SETTINGS 8

/* A query about a kernel (client/base/query_cache.h), whose reply is a number. */
struct gpc_question {
	/* Of the session (its share of the GPU) and of the preferred cache of the image. */
	uint64_t revision;
	uint32_t what;
	uint32_t kernel; /* index in the image */
	int32_t device;
	uint32_t settings_known;                 /* bit i: settings[i] is known */
	int32_t settings[GPC_QUESTION_SETTINGS]; /* of the kernel: CUfunction_attribute 8 … 15 */
	uint32_t words[GPC_QUESTION_WORDS];      /* what else was asked */
};

/* Before a query whose reply depends on the session's share of the GPU: the daemon reports changes
 * of that from now on.  false: it cannot, so the reply is not stored. */
bool gpc_share_watch(struct gpc_context *context);

static inline bool
gpc_question_find(struct gpc_image *image, const struct gpc_question *question, uint64_t *answer_p)
{
	return gpc_query_cache_find(&image->answers, question, sizeof(*question), answer_p,
				    sizeof(*answer_p));
}

static inline void
gpc_question_put(struct gpc_image *image, const struct gpc_question *question, uint64_t answer)
{
	gpc_query_cache_put(&image->answers, question, sizeof(*question), &answer, sizeof(answer));
}

/* A question about a kernel, as it is set up now; and what it says of a launch's shape. */
void gpc_launch_question(struct gpc_question *question, enum gpc_question_what what,
			 const struct gpc_context *context, const struct gpc_function *function);
void gpc_launch_question_shape(struct gpc_question *question, const CUlaunchConfig *config,
			       const struct gpc_launch_attributes *attributes);
/* How many blocks of so many threads fit on a multiprocessor. */
void gpc_launch_question_blocks(struct gpc_question *question, const struct gpc_context *context,
				const struct gpc_function *function, int threads, uint64_t shared,
				unsigned int flags);

struct gpc_shape_check {
	struct gpc_context *context;
	struct gpc_function *function;
	struct gpc_question question;
	uint64_t blocks;
	uint64_t shared;     /* bytes of dynamic shared memory for each */
	uint32_t threads;    /* of a block */
	uint32_t source;     /* of the multiprocessors: a green context, 0: the session */
	bool count_together; /* it is refused for the number of its blocks alone */
	bool needed;         /* to be waited for */
};

/* Without asking the daemon. */
void gpc_shape_begin(struct gpc_shape_check *check, struct gpc_context *context,
		     struct gpc_function *function, const CUlaunchConfig *config,
		     const struct gpc_launch_attributes *attributes, uint32_t source);
/* Asks how many blocks may run together, where that decides and is not known. */
void gpc_shape_ask(struct gpc_shape_check *check);
/* The daemon has accepted what was needed. */
void gpc_shape_accepted(const struct gpc_shape_check *check);

/* Those of several launches that are needed.  Zeroed there are none; the caller frees the list. */
struct gpc_shapes {
	struct gpc_shape_check *list;
	size_t count, room;
};

/* Looks at one more launch; accepts NULL. */
CUresult gpc_shapes_add(struct gpc_shapes *shapes, struct gpc_context *context, CUfunction function,
			const struct gp_args_gpLaunch *args,
			const struct gpc_launch_attributes *attributes);
/* gpc_shape_ask() for each; those that need not be waited for go. */
void gpc_shapes_ask(struct gpc_shapes *shapes);
/* The daemon has accepted all of them. */
void gpc_shapes_accepted(const struct gpc_shapes *shapes);

#endif /* GPC_SHAPE_H */
