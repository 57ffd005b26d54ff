/* SPDX-License-Identifier: Apache-2.0 */
/* What launches and questions about launches have in common.  Executor, unless it says otherwise.
 */
#ifndef GPD_LAUNCH_H
#define GPD_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_issue;
struct gpd_issue_launch;
struct gpd_session;

#define GPD_LAUNCH_ATTRIBUTES_MAX 16

/* What the arguments of such a call say, without attributes. */
#define GPD_LAUNCH_CONFIG(args)                                                                    \
	((CUlaunchConfig){                                                                         \
		.gridDimX = (args)->grid_x,                                                        \
		.gridDimY = (args)->grid_y,                                                        \
		.gridDimZ = (args)->grid_z,                                                        \
		.blockDimX = (args)->block_x,                                                      \
		.blockDimY = (args)->block_y,                                                      \
		.blockDimZ = (args)->block_z,                                                      \
		.sharedMemBytes = (args)->shared,                                                  \
	})

/*
 * Takes the attributes of a call over into config->attrs, which has room for
 * GPD_LAUNCH_ATTRIBUTES_MAX.  CUDA_ERROR_NOT_SUPPORTED: one that cannot be given remotely;
 * CUDA_ERROR_INVALID_VALUE: no such list, or memory that is not the session's.
 */
CUresult gpd_launch_attributes(struct gpd_session *session, struct gp_bytes attributes,
			       CUlaunchConfig *config);

/* What was handed over to a thread (issue.h) has failed, which is of a session: the same as of any
 * posted call.  Any thread. */
void gpd_launch_failed(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);

#endif /* GPD_LAUNCH_H */
