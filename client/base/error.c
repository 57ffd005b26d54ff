/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/error.h"

#include "base/status.h"

#include <errno.h>

CUresult
gpc_error_to_cuda(int r)
{
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		/* Unreachable, foreign, of another version, REMOTE_GPU misspelt, connection lost:
		 * what the application can do about any of them is the same. */
		return GPC_ERROR_NO_SESSION;
	}
}
