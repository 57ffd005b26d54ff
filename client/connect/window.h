/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window: the session's range of device addresses. It is reserved in this process, so that no host
 * memory is mapped there and every pointer is unambiguously a host or a device pointer.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_WINDOW_H
#define GPC_WINDOW_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct gpc_window_range {
	uint64_t base, size;
};

/* Reserves a range. Errors: GP_E_INVALID: something is already mapped there; -ENOMEM: the process's
 * limit for address space is exceeded. */
GP_MUST_CHECK int gpc_window_reserve(uint64_t base, uint64_t size);
/* Unreserves a range. */
void gpc_window_release(uint64_t base, uint64_t size);
/* Reserves whole pages at a fixed address. Addresses that no process can map are accepted without a
 * reservation. Errors: GP_E_INVALID: something is mapped there, or nothing may be; -ENOMEM,
 * -EAGAIN: this process cannot map more. */
GP_MUST_CHECK int gpc_window_reserve_pages(uint64_t base, uint64_t size);

/* Lists the mapped address ranges of this process; ranges with small gaps between them are merged.
 * The caller frees *ranges_p. Returns a negative errno on failure. */
GP_MUST_CHECK int gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p);

#endif /* GPC_WINDOW_H */
