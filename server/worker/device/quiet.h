/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quiet moment of a device, for what the driver does only when nothing runs.
 *
 * The first kernel of a library, unloading one, making a green context and raising a limit wait
 * until no kernel runs in the context, and until then no launch of anybody gets through the driver,
 * or to the GPU.  So who is about to do one of these waits first, outside of the driver, for a
 * moment at which all that the GPU was given is done soon.  Sessions whose work is long launch no
 * more meanwhile, or there might be no such moment; those whose work is short go on.
 */
#ifndef GPD_QUIET_H
#define GPD_QUIET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Work that takes longer disturbs; nobody is stopped for longer; nobody waits longer, unless there
 * is work that has not ended since. */
extern uint64_t gpd_quiesce_short_ns, gpd_quiesce_long_ns, gpd_quiesce_stop_ns,
	gpd_quiesce_limit_ns;

/*
 * Waits for a quiet moment of the device, which is current in this thread; others may be stopped
 * for it.  false: *given_up (NULL: never) has become true, or the GPU is lost.  Either way
 * gpd_quiesce_end() follows.  Any thread, with no lock that a launch needs.
 */
bool gpd_quiesce_begin(int device, const _Atomic bool *given_up);
void gpd_quiesce_end(int device);

/* The same without stopping anybody, for what is in no hurry.  Whether it is quiet now. */
bool gpd_quiesce_try(int device);

/* Whether there is such a moment now; looks no longer than the work may take. */
bool gpd_quiesce_is_idle(int device);

/* A bit for each device on which sessions are stopped. */
extern _Atomic uint32_t gpd_quiesce_stopped;

static inline bool
gpd_quiesce_is_stopped(int device)
{
	return atomic_load_explicit(&gpd_quiesce_stopped, memory_order_relaxed) >> device & 1;
}

/* Whose work takes longer than this is stopped: at first only those who have long work, and all but
 * those with short work when the long work is done. */
uint64_t gpd_quiesce_get_timeout_ns(int device);

/* Until nobody is stopped on the device. */
void gpd_quiesce_wait_end(int device, const _Atomic bool *given_up);

#endif /* GPD_QUIET_H */
