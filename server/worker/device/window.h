/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: the ranges of device addresses that the worker's sessions live in, one each.  A window
 * is reserved from the driver for as long as its session lives.  Any thread.
 */
#ifndef GPD_WINDOW_H
#define GPD_WINDOW_H

#include "server/common/ledger/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where windows lie: no process keeps anything of its own around there. */
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer's shadow leaves less; see softgpu/engine/engine.h. */
#define GPD_WINDOW_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_END UINT64_C(0x553000000000)
#define GPD_HOST_END GPD_WINDOW_END
#else
#define GPD_WINDOW_FIRST UINT64_C(0x110000000000)
#define GPD_WINDOW_END UINT64_C(0x540000000000)
/* Where host memory ends that kernels reach: those of the software device reach nothing above. */
#define GPD_HOST_END UINT64_C(0x3f0000000000)
#endif

/* Where windows of programs with ThreadSanitizer lie, which leaves no other addresses (with its
 * own shadow, and the program somewhere in between). */
#define GPD_WINDOW_SANITIZED_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_SANITIZED_END UINT64_C(0x568000000000)

/*
 * Before the driver is started: what it maps from now on lies apart from where programs have their
 * memory.  It takes the addresses of variables from those of this process, and a client can use
 * none at which its program has something; both would else have theirs in the same part of the
 * addresses, at random.
 */
void gpd_window_separate_driver(void);

/* What GPUPOOL_WINDOW_SIZE says, in bytes; NULL or empty: 0, the usual size.  false: it is no size
 * that a window can have. */
bool gpd_window_size_parse(const char *text, uint64_t *size_p);

/*
 * size 0: the usual one, in which so many bytes of memory have room; less when there are many
 * sessions.  0, or -ENOMEM when no range is free that touches none of `avoid`.
 */
int gpd_window_acquire(uint64_t size, uint64_t memory, const struct gpd_range *avoid,
		       size_t avoid_count, struct gpd_range *window_p);

/* Nothing is mapped in it any more. */
void gpd_window_release(const struct gpd_range *window);

/*
 * The same for host memory: addresses of this process, where it has nothing and the driver has
 * nothing either, reserved without access until they are given back.  At most size bytes.
 */
int gpd_window_acquire_host(uint64_t size, struct gpd_range *range_p);
void gpd_window_release_host(const struct gpd_range *range);

#endif /* GPD_WINDOW_H */
