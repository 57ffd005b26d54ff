/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a device's primary context (cuCtxSetLimit()), which all sessions of the worker share.
 *
 * A limit is the largest value that any of the sessions has requested, and at least the worker's
 * own. The device memory by which a session's request exceeds the worker's own value is charged to
 * the session, also if the limit is already that high because of another one: so the memory is
 * charged while any session needs it. When a session ends, its limits go back in the background
 * (device/quiesce_jobs.h). If the driver refuses that, for example because kernels have used the
 * heap, the worker is replaced when it has no session (gpd_devices.worn, device/device.h).
 *
 * Ownership: the device owns the requests, gpd_device.limit_requests, until
 * gpd_context_limits_release().
 * Threads: executor only.
 * Units: bytes, or numbers, as cuCtxSetLimit() has them.
 */
#ifndef GPD_CONTEXT_LIMIT_H
#define GPD_CONTEXT_LIMIT_H

#include <cuda.h>
#include <stdint.h>

struct gpd_session;

/* Makes the limit of the device at least `value`, from the client, unchecked, until the session
 * ends. limit: of the stack, the printf buffer, the heap, the depth of synchronization or the
 * pending launches. Makes the device current. Blocks, if the value is higher than the present one,
 * until the device is nearly idle. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if the value
 * would take too large a part of the device, or exceeds a quota of the session or its tenant;
 * CUDA_ERROR_DEINITIALIZED if the session is closing; or the driver's error. On failure nothing is
 * charged. */
CUresult gpd_context_limit_request(struct gpd_session *session, int ordinal, CUlimit limit,
				   uint64_t value);

/* Ends the session's requests at its end. Their charges end with its entry in the ledger. Does not
 * wait. */
void gpd_context_limits_release(struct gpd_session *session);

#endif /* GPD_CONTEXT_LIMIT_H */
