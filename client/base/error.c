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
		/* Unreachable daemon, not a gpupool daemon, version mismatch, misspelled
		 * REMOTE_GPU, lost connection: an application handles them all alike. */
		return GPC_ERROR_NO_SESSION;
	}
}
