/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong below CUDA, as a CUresult: the only place that makes one out of our own codes.
 */
#ifndef GPC_ERROR_H
#define GPC_ERROR_H

#include <cuda.h>

/* r: 0, a negative errno or a GP_E_*, as the shared layers return them. */
CUresult gpc_error_to_cuda(int r);

/* No daemon is named, and this machine has no driver of its own. */
#define GPC_ERROR_NO_DRIVER CUDA_ERROR_NO_DEVICE
/* A session that cannot be had. */
#define GPC_ERROR_NO_SESSION CUDA_ERROR_SYSTEM_NOT_READY
/* One that was lost, with its daemon, its worker or its connection. */
#define GPC_ERROR_LOST CUDA_ERROR_DEVICE_UNAVAILABLE

#endif /* GPC_ERROR_H */
