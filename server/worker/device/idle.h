/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiescence: waits until a device's context is idle, for driver calls that block until no kernel
 * runs.
 *
 * The first launch of a library's kernel, unloading a library, creating a green context and raising
 * a limit wait until no kernel runs in the context. Until then the driver blocks all launches of
 * all sessions. Before such a call the caller therefore waits here, outside the driver, until all
 * work of the GPU is about to complete. Sessions with long work do not launch meanwhile, because
 * otherwise the context might never become idle; sessions with short work continue.
 *
 * Threads: any, without a lock that a launch needs.
 */
#ifndef GPD_IDLE_H
#define GPD_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds. short: work that takes longer delays other sessions. long: work that takes longer is
 * stopped first. stop: maximum time that launches are stopped. limit: maximum wait, unless work
 * does not end at all. */
extern uint64_t gpd_quiesce_short_ns, gpd_quiesce_long_ns, gpd_quiesce_stop_ns,
	gpd_quiesce_limit_ns;

/*
 * Waits until the device, whose context must be current in this thread, is idle; launches of other
 * sessions may be stopped for it. Returns false if *given_up (NULL: never) became true or the GPU
 * is lost. gpd_quiesce_end() must follow in both cases.
 */
bool gpd_quiesce_begin(int device, const _Atomic bool *given_up);
/* Ends what gpd_quiesce_begin() started; the last caller lets the stopped sessions launch again. */
void gpd_quiesce_end(int device);

/* Waits in the same way without stopping any session, for calls that are not urgent. Returns
 * whether the device is idle; there is no end call. */
bool gpd_quiesce_try(int device);

/* Whether the device is idle now; waits at most gpd_quiesce_short_ns. */
bool gpd_quiesce_is_idle(int device);

/* Bit for each device on which launches are stopped. */
extern _Atomic uint32_t gpd_quiesce_stopped;

static inline bool
gpd_quiesce_is_stopped(int device)
{
	return atomic_load_explicit(&gpd_quiesce_stopped, memory_order_relaxed) >> device & 1;
}

/* Sessions whose work takes longer than this are stopped: first only those with long work, then,
 * when the long work is done, all except those with short work. */
uint64_t gpd_quiesce_get_timeout_ns(int device);

/* Waits until launches on the device are no longer stopped, *given_up is true or the GPU is
 * lost. */
void gpd_quiesce_wait_end(int device, const _Atomic bool *given_up);

#endif /* GPD_IDLE_H */
