/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiescence: waits until a device is nearly idle, for driver calls that block until no kernel
 * runs.
 *
 * The first launch of a library's kernel, unloading a library, creating a green context and raising
 * a limit wait until no kernel runs on the device. Until then the driver blocks all launches of all
 * sessions. Before such a call the caller therefore waits here, outside the driver, until the
 * device is nearly idle: all work that is queued now in its primary context, of all sessions, ends
 * within gpd_quiesce_short_ns. The driver call waits for that rest. Sessions with long work do not
 * launch while the caller waits, because otherwise the device might never become nearly idle;
 * sessions with short work continue. If the driver cannot report the work of a context, all devices
 * count as nearly idle.
 *
 * Threads: any, without a lock that a launch needs. The device's primary context must be current
 * for the functions that wait for the GPU.
 */
#ifndef GPD_QUIESCE_H
#define GPD_QUIESCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Times in nanoseconds, changed only by tests. short (10 ms): work that takes longer would delay
 * other sessions. long (250 ms): while launches are stopped, a session is stopped first if its
 * present work takes longer than this. stop (60 s): maximum time for which launches are stopped.
 * limit (120 s): time after which the wait ends with the round that is under way. */
extern uint64_t gpd_quiesce_short_ns, gpd_quiesce_long_ns, gpd_quiesce_stop_ns,
	gpd_quiesce_limit_ns;

/*
 * Blocks until the device is nearly idle; after gpd_quiesce_short_ns launches of sessions with long
 * work are stopped for it, for at most gpd_quiesce_stop_ns. Several callers may wait at once.
 *
 * It waits in rounds. A round waits, without a limit, for the work that the GPU has when the round
 * begins. The wait ends after a round that took at most gpd_quiesce_short_ns, or the first one that
 * ends gpd_quiesce_limit_ns after the call. Returns true then; or false if *given_up became true
 * (NULL: never) or the GPU is lost. gpd_quiesce_end() must follow in both cases.
 */
bool gpd_quiesce_begin(int device, const _Atomic bool *given_up);
/* Ends what gpd_quiesce_begin() started, after the driver call; the last of several callers lets
 * the stopped sessions launch again. */
void gpd_quiesce_end(int device);

/* Blocks until the device is nearly idle, without stopping any session, for calls that are not
 * urgent. Waits in rounds, as gpd_quiesce_begin(). Returns true if the device is nearly idle, or if
 * the driver cannot report it, as after the loss of the GPU; false if it was not nearly idle for
 * gpd_quiesce_limit_ns, or if the worker notices the loss during the wait, which then ends early.
 * gpd_quiesce_end() must not follow. */
bool gpd_quiesce_try(int device);

/* Returns whether the device is nearly idle now, or the driver cannot report it. Waits at most
 * gpd_quiesce_short_ns, and returns false if the worker notices the loss of the GPU meanwhile.
 * Stops no session. */
bool gpd_quiesce_is_idle(int device);

/* Bit n: launches on device n are stopped. */
extern _Atomic uint32_t gpd_quiesce_stopped;

static inline bool
gpd_quiesce_is_stopped(int device)
{
	return atomic_load_explicit(&gpd_quiesce_stopped, memory_order_relaxed) >> device & 1;
}

/* Called for a session while launches are stopped, with the time in nanoseconds that its present
 * work took: if it took longer than the returned time, the session must stop launching and wait in
 * gpd_quiesce_wait_end(). At first the time is gpd_quiesce_long_ns; when the long work is done,
 * gpd_quiesce_short_ns. */
uint64_t gpd_quiesce_get_stop_threshold_ns(int device);

/* Waits until launches on the device are no longer stopped, *given_up is true (NULL: never) or the
 * GPU is lost. */
void gpd_quiesce_wait_end(int device, const _Atomic bool *given_up);

#endif /* GPD_QUIESCE_H */
