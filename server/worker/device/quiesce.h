/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiescence: waits until a device's context is idle, for driver calls that block until no kernel
 * runs.
 *
 * The first launch of a library's kernel, unloading a library, creating a green context and raising
 * a limit wait until no kernel runs in the context. Until then the driver blocks all launches of
 * all sessions. Before such a call the caller therefore waits here, outside the driver, until the
 * device is idle: its work, including the work of all sessions, ends within gpd_quiesce_short_ns.
 * Sessions with long work do not launch in the meantime, because otherwise the context might never
 * become idle; sessions with short work continue. If the driver cannot report the state of a
 * context, all devices count as idle.
 *
 * Threads: any, without a lock that a launch needs. The device's primary context must be current
 * for the functions that wait for the GPU.
 */
#ifndef GPD_QUIESCE_H
#define GPD_QUIESCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Times in nanoseconds, changed only by tests. short: work that takes longer would delay other
 * sessions. long: while launches are stopped, a session is stopped first if its present work takes
 * longer than this. stop: maximum time for which launches are stopped. limit: time after which the
 * wait ends with the round that is under way. */
extern uint64_t gpd_quiesce_short_ns, gpd_quiesce_long_ns, gpd_quiesce_stop_ns,
	gpd_quiesce_limit_ns;

/*
 * Blocks until the device is idle; after gpd_quiesce_short_ns launches of sessions with long work
 * are stopped for it, for at most gpd_quiesce_stop_ns. Several callers may wait at once.
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

/* Blocks until the device is idle, without stopping any session, for calls that are not urgent.
 * Waits in rounds, as gpd_quiesce_begin(). Returns true if the device is idle, or if the driver
 * cannot report it, as after the loss of the GPU; false if it was not idle for
 * gpd_quiesce_limit_ns. gpd_quiesce_end() must not follow. */
bool gpd_quiesce_try(int device);

/* Returns whether the device is idle now; waits at most gpd_quiesce_short_ns. Stops no session. */
bool gpd_quiesce_is_idle(int device);

/* Bit n: launches on device n are stopped. */
extern _Atomic uint32_t gpd_quiesce_stopped;

static inline bool
gpd_quiesce_is_stopped(int device)
{
	return atomic_load_explicit(&gpd_quiesce_stopped, memory_order_relaxed) >> device & 1;
}

/* Called for a session while launches are stopped, with the time in nanoseconds that its present
 * work took: if it took longer than the returned time, the session waits in gpd_quiesce_wait_end().
 * At first the time is gpd_quiesce_long_ns; when the long work is done, gpd_quiesce_short_ns. */
uint64_t gpd_quiesce_get_timeout_ns(int device);

/* Waits until launches on the device are no longer stopped, *given_up is true (NULL: never) or the
 * GPU is lost. */
void gpd_quiesce_wait_end(int device, const _Atomic bool *given_up);

#endif /* GPD_QUIESCE_H */
