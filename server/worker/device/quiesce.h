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
 * sessions. long: sessions with longer work are stopped first. stop: maximum time for which
 * launches are stopped. limit: maximum wait, unless work does not end at all. */
extern uint64_t gpd_quiesce_short_ns, gpd_quiesce_long_ns, gpd_quiesce_stop_ns,
	gpd_quiesce_limit_ns;

/*
 * Blocks until the device is idle; after gpd_quiesce_short_ns launches of sessions with long work
 * are stopped for it, for at most gpd_quiesce_stop_ns. Several callers may wait at once. Returns
 * true if the wait has ended, also after gpd_quiesce_limit_ns. Work that does not end at all is
 * waited for without a limit. Returns false if *given_up became true (NULL: never) or the GPU is
 * lost. gpd_quiesce_end() must follow in both cases.
 */
bool gpd_quiesce_begin(int device, const _Atomic bool *given_up);
/* Ends what gpd_quiesce_begin() started, after the driver call; the last of several callers lets
 * the stopped sessions launch again. */
void gpd_quiesce_end(int device);

/* Blocks until the device is idle, without stopping any session, for calls that are not urgent.
 * Returns true if the device is idle; false if it was not idle for gpd_quiesce_limit_ns, or the GPU
 * is lost. Work that does not end at all is waited for without a limit. gpd_quiesce_end() must not
 * follow. */
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
