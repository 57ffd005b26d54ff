/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a daemon may refuse a launch for its shape: one of clusters, or of blocks that must run
 * together.  What has been accepted is accepted again (answers.h), so the caller posts it; anything
 * else it waits for, and says then that it was accepted.  Of blocks that run together so many are
 * accepted as fit on a multiprocessor, times the multiprocessors: both are asked once.  A check is
 * the caller's, and names context and function, which outlive it.  Any thread.
 */
#ifndef GPC_SHAPE_H
#define GPC_SHAPE_H

#include "client/code/launch.h"

struct gp_args_gpLaunch;

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
	uint64_t revision;
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
