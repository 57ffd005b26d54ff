/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of kernel launches and of queries about launches.
 *
 * Threads: executor only, unless noted. No function blocks.
 * Errors: CUresult, CUDA_SUCCESS on success.
 */
#ifndef GPD_LAUNCH_H
#define GPD_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_issue;
struct gpd_issue_launch;
struct gpd_session;

/* Maximum number of attributes of a launch. */
#define GPD_LAUNCH_ATTRIBUTES_MAX 16

/* Evaluates to a CUlaunchConfig from args, the decoded arguments of a launch, without attributes
 * and stream. */
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
 * Copies the attributes of a call to config->attrs, which the caller has set to an array of
 * GPD_LAUNCH_ATTRIBUTES_MAX elements, and sets config->numAttrs. Omits an access policy window that
 * is empty or whose memory the session's copies may not access, and applies the session's priority
 * to that of a launch (gpd_schedule_priority()): all attributes that reach the driver pass through
 * this function. device: its ordinal, on which the kernel runs. attributes: an array of
 * CUlaunchAttribute from the client, unchecked, which may be freed on return; size 0: none, and
 * config stays unchanged. Returns CUDA_SUCCESS; CUDA_ERROR_NOT_SUPPORTED if an attribute is not
 * available remotely; CUDA_ERROR_INVALID_VALUE if the size is not a whole number of attributes or
 * there are too many. On failure config must not be used.
 */
CUresult gpd_launch_attributes(struct gpd_session *session, int device, struct gp_bytes attributes,
			       CUlaunchConfig *config);

/* The callback gpd_issue.failed (issue/issue.h) of a session: logs the failure of a launch that was
 * handed to a launch thread, and reports it to the client as an error of a call without a reply.
 * Any thread that does not hold gpd_sessions.lock. */
void gpd_launch_failed(struct gpd_issue *issue, const struct gpd_issue_launch *kernel_launch,
		       CUresult result);

#endif /* GPD_LAUNCH_H */
