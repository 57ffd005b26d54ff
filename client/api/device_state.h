/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of devices for gpupool's NVML library, which reaches them through struct gpc_nvml_table
 * (client/base/nvml_table.h). The index of a device is its position in REMOTE_GPU, where devices
 * that CUDA_VISIBLE_DEVICES hides count, too.
 *
 * Threads: any thread, after the sessions were opened (gpc_session_open(), client/entry/init.h).
 */
#ifndef GPC_DEVICE_STATE_H
#define GPC_DEVICE_STATE_H

#include "client/base/nvml_table.h"

/* Fills *out. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_DEVICE, with *out unchanged, if the index
 * is out of range. */
CUresult gpc_any_device_describe(int index, struct gpc_nvml_device *out);
/* Returns whether kernels of one device can access the memory of the other (peer_access.h); false
 * if an index is out of range. */
bool gpc_any_device_has_peer_access(int index, int other);
/* Queries the state of a device, and waits for the daemon's reply. Needs no context. parts: mask of
 * enum gp_state_part (protocol/device_state.h). Returns CUDA_SUCCESS and fills *state. Errors,
 * after which *state must not be used: CUDA_ERROR_INVALID_DEVICE if the index is out of range;
 * CUDA_ERROR_UNKNOWN if the reply is malformed; the error of a failed session or of the daemon. The
 * error of an earlier posted call (client/session/session.h) is left to the next CUDA call. */
CUresult gpc_any_device_get_state(int index, unsigned int parts, struct gp_device_state *state);

#endif /* GPC_DEVICE_STATE_H */
