/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: ranges of device addresses, one for each session, in which all its device memory is
 * mapped. A window is reserved from the driver from gpd_window_acquire() to gpd_window_release().
 *
 * Threads: any; the functions use a lock of their own.
 * Errors: 0 or a negative errno.
 * Units: bytes.
 */
#ifndef GPD_WINDOW_H
#define GPD_WINDOW_H

#include "server/common/ledger/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Range of the windows; programs place no memory of their own there. */
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer's shadow memory leaves less; see softgpu/engine/engine.h. */
#define GPD_WINDOW_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_END UINT64_C(0x553000000000)
#define GPD_HOST_END GPD_WINDOW_END
#else
#define GPD_WINDOW_FIRST UINT64_C(0x110000000000)
#define GPD_WINDOW_END UINT64_C(0x540000000000)
/* End of the addresses of host memory that kernels can access: kernels of the software device
 * cannot access higher addresses. */
#define GPD_HOST_END UINT64_C(0x3f0000000000)
#endif

/* Range of the windows of programs with ThreadSanitizer, which leaves no other addresses free
 * besides its shadow memory; the program lies between the two ranges. */
#define GPD_WINDOW_SANITIZED_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_SANITIZED_END UINT64_C(0x568000000000)

/*
 * Moves the driver's later mappings away from the addresses that programs use. The driver derives
 * the addresses of variables from those of this process, and a client cannot use an address at
 * which its program has memory. Without this, both would use the same part of the address space, at
 * random.
 *
 * Main thread, before the driver is started.
 */
void gpd_window_separate_driver(void);

/* Parses GPUPOOL_WINDOW_SIZE, in bytes. NULL or empty text: *size_p is 0, the default size. Returns
 * true; or false if it is not a valid size, and *size_p is 0. */
bool gpd_window_size_parse(const char *text, uint64_t *size_p);

/*
 * Reserves a window. size: the size that the client requests (unchecked), raised to at least 1 GiB
 * and rounded up to the devices' granularity; more than 4 TiB fails. 0: the default,
 * GPUPOOL_WINDOW_SIZE or else space for `memory` bytes of device memory; less if there are many
 * sessions or no such range is free. memory is used only if size is 0. avoid: avoid_count ranges
 * that the window must not overlap, from the client, unchecked; may be NULL if avoid_count is 0.
 * Returns 0 with *window_p set; or -ENOMEM if there is no free range, and *window_p is unchanged.
 * After gpd_devices_start().
 */
int gpd_window_acquire(uint64_t size, uint64_t memory, const struct gpd_range *avoid,
		       size_t avoid_count, struct gpd_range *window_p);

/* Returns whether a window was refused, and one of the default size for little memory, which avoids
 * nothing, cannot be reserved now either. Called when the worker has no session: it cannot serve
 * another one. */
bool gpd_window_is_exhausted(void);

/* Releases a window, in which nothing may be mapped, and which the caller then no longer uses. Does
 * nothing if its size is 0. */
void gpd_window_release(const struct gpd_range *window);

/*
 * Reserves addresses for host memory, at most size bytes and 64 GiB: a range of this process that
 * neither the process nor the driver uses, without access until it is mapped. Returns 0 with
 * *range_p set, valid until gpd_window_release_host(); or -ENOMEM if there is no free range or size
 * is 0, and *range_p is unchanged. size is rounded up to 2 MiB.
 */
int gpd_window_acquire_host(uint64_t size, struct gpd_range *range_p);
/* Unmaps the range and releases its addresses. The driver must not have registered memory in it.
 * Does nothing if its size is 0. */
void gpd_window_release_host(const struct gpd_range *range);

#endif /* GPD_WINDOW_H */
