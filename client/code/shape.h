/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a daemon may refuse a launch for its shape: one of clusters, or of blocks that must run
 * together.  What has been accepted is accepted again (answers.h), so the caller posts it; anything
 * else it waits for, and says then that it was accepted.  A check is the caller's, and names the
 * function, which outlives it.  Any thread.
 */
#ifndef GPC_SHAPE_H
#define GPC_SHAPE_H

#include "client/code/launch.h"

struct gp_args_gpLaunch;

struct gpc_shape_check {
	struct gpc_function *function;
	struct gpc_question question;
	uint64_t blocks;
	uint64_t revision;
	bool needed; /* to be waited for */
};

/* Without asking the daemon. */
void gpc_shape_begin(struct gpc_shape_check *check, struct gpc_context *context,
		     struct gpc_function *function, const CUlaunchConfig *config,
		     const struct gpc_launch_attributes *attributes);
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
/* The daemon has accepted all of them. */
void gpc_shapes_accepted(const struct gpc_shapes *shapes);

#endif /* GPC_SHAPE_H */
