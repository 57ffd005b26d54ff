/* SPDX-License-Identifier: Apache-2.0 */
/* What launches and questions about launches have in common.  Executor only. */
#ifndef GPD_LAUNCH_H
#define GPD_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_session;

#define GPD_LAUNCH_ATTRIBUTES_MAX 16

/*
 * Takes the attributes of a call over into config->attrs, which has room for
 * GPD_LAUNCH_ATTRIBUTES_MAX.  CUDA_ERROR_NOT_SUPPORTED: one that cannot be given remotely;
 * CUDA_ERROR_INVALID_VALUE: no such list, or memory that is not the session's.
 */
CUresult gpd_launch_attributes(struct gpd_session *session, struct gp_bytes attributes,
			       CUlaunchConfig *config);

#endif /* GPD_LAUNCH_H */
