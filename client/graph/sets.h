/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executable graph is run as: steps of the client's, and sets of nodes that the daemon has
 * made graphs of its driver from (plan.h).  They belong to the executable, whose use they share.
 * What follows talks to the daemon, so it is called without gpc_graphs_lock.
 */
#ifndef GPC_SETS_H
#define GPC_SETS_H

#include "client/graph/plan.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_exec_step;
struct gpc_stream;

/* Zeroed there are none. */
struct gpc_exec_steps {
	struct gpc_context *context; /* of the sets; NULL: there are no sets, or of several */
	struct gpc_exec_step *steps;
	size_t count;
	bool updatable;  /* by kernels */
	bool launchable; /* by kernels, and... */
	uint64_t exec;   /* ... so is it named there */
};

/* Whether the daemon has what it was given; after a reset of the context it has nothing.  Any
 * thread that keeps others from sending. */
bool gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps);

/* Brings the daemon up to the plan.  After a failure it may have a part: the next call sends all
 * anew. */
CUresult gpc_exec_steps_send(struct gpc_exec_steps *exec_steps, struct gpc_plan *plan);
/* Before kernels launch or change it, in the order of the stream; for another one it does
 * nothing. */
CUresult gpc_exec_steps_upload(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);
/* Gives all up. */
void gpc_exec_steps_drop(struct gpc_exec_steps *exec_steps);
/* Puts all steps into the stream.  Those of a context beside others go into a stream of that
 * context which is the sets' own; events make it all one behind, and one before the stream's work.
 */
CUresult gpc_exec_steps_launch(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);

#endif /* GPC_SETS_H */
