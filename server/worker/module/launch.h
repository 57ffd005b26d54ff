/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of launches and of queries about launches.
 *
 * Threads: executor only, unless noted.
 * Errors: CUresult.
 */
#ifndef GPD_LAUNCH_H
#define GPD_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_issue;
struct gpd_issue_launch;
struct gpd_session;

#define GPD_LAUNCH_ATTRIBUTES_MAX 16

/* Launch configuration from the arguments of such a call, without attributes. */
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
 * Copies the attributes of a call to config->attrs, which must have room for
 * GPD_LAUNCH_ATTRIBUTES_MAX. CUDA_ERROR_NOT_SUPPORTED: an attribute that is not available remotely;
 * CUDA_ERROR_INVALID_VALUE: not a valid list.
 */
CUresult gpd_launch_attributes(struct gpd_session *session, struct gp_bytes attributes,
			       CUlaunchConfig *config);

/* Any thread. Reports the failure of a session's launch that was handed to a thread (issue.h), like
 * that of any posted call. */
void gpd_launch_failed(struct gpd_issue *issue, const struct gpd_issue_launch *launch,
		       CUresult result);

#endif /* GPD_LAUNCH_H */
