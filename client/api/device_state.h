/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices by their index in REMOTE_GPU, including those hidden by CUDA_VISIBLE_DEVICES: implements
 * the functions of struct gpc_pool_table (client/base/pool_table.h) for gpupool's NVML library.
 *
 * Threads: any thread, once the sessions are open.
 */
#ifndef GPC_DEVICE_STATE_H
#define GPC_DEVICE_STATE_H

#include "client/base/pool_table.h"

/* Fills *out. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_DEVICE, with *out unchanged, if the index
 * is out of range. */
CUresult gpc_listed_device_describe(int index, struct gpc_pool_device *out);
/* Returns whether kernels of one device can access the memory of the other (peer_access.h); false
 * if an index is out of range. */
bool gpc_listed_device_has_peer_access(int index, int other);
/* Queries the state of a device, without a context, and waits for the reply. parts: mask of enum
 * gp_state_part. Returns CUDA_SUCCESS and fills *state. Errors, after which *state must not be
 * used: CUDA_ERROR_INVALID_DEVICE if the index is out of range; CUDA_ERROR_UNKNOWN if the reply is
 * malformed; errors of the call. */
CUresult gpc_listed_device_get_state(int index, unsigned int parts, struct gp_device_state *state);

#endif /* GPC_DEVICE_STATE_H */
