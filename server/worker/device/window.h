/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: ranges of device addresses, one for each session, in which all its device memory is
 * mapped. A window is reserved from the driver for as long as its session lives.
 *
 * Threads: any.
 * Errors: 0 or a negative errno.
 */
#ifndef GPD_WINDOW_H
#define GPD_WINDOW_H

#include "server/common/ledger/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Range of the windows: processes place nothing of their own there. */
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer's shadow memory leaves less; see softgpu/engine/engine.h. */
#define GPD_WINDOW_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_END UINT64_C(0x553000000000)
#define GPD_HOST_END GPD_WINDOW_END
#else
#define GPD_WINDOW_FIRST UINT64_C(0x110000000000)
#define GPD_WINDOW_END UINT64_C(0x540000000000)
/* End of the host memory that kernels can access: those of the software device cannot access higher
 * addresses. */
#define GPD_HOST_END UINT64_C(0x3f0000000000)
#endif

/* Windows of programs with ThreadSanitizer, which leaves no other addresses (besides its shadow,
 * with the program in between). */
#define GPD_WINDOW_SANITIZED_FIRST UINT64_C(0x550000000000)
#define GPD_WINDOW_SANITIZED_END UINT64_C(0x568000000000)

/*
 * To be called before the driver is started: moves the driver's later mappings away from the
 * addresses that programs use. The driver takes the addresses of variables from those of this
 * process, and a client cannot use an address at which its program has memory. Without this, both
 * would use the same part of the address space, at random.
 */
void gpd_window_separate_driver(void);

/* Parses GPUPOOL_WINDOW_SIZE, in bytes; NULL or empty: 0, the default size. false: not a valid
 * size. */
bool gpd_window_size_parse(const char *text, uint64_t *size_p);

/*
 * Reserves a window. size 0: the default, with room for `memory` bytes of device memory; less when
 * there are many sessions. Returns 0, or -ENOMEM if there is no free range outside of `avoid`.
 */
int gpd_window_acquire(uint64_t size, uint64_t memory, const struct gpd_range *avoid,
		       size_t avoid_count, struct gpd_range *window_p);

/* Nothing may be mapped in it. */
void gpd_window_release(const struct gpd_range *window);

/*
 * Reserves addresses for host memory, at most size bytes: a range of this process that neither the
 * process nor the driver uses, without access until it is mapped. Valid until
 * gpd_window_release_host().
 */
int gpd_window_acquire_host(uint64_t size, struct gpd_range *range_p);
void gpd_window_release_host(const struct gpd_range *range);

#endif /* GPD_WINDOW_H */
