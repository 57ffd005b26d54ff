/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window: the session's range of device addresses. It is reserved in this process, so that no host
 * memory is mapped there and every pointer is unambiguously a host or a device pointer.
 *
 * Ownership: a reservation lasts until gpc_window_release() or until the process ends.
 * Threads: any thread may call.
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_WINDOW_H
#define GPC_WINDOW_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A mapped range [base, base + size). */
struct gpc_window_range {
	uint64_t base, size;
};

/* Reserves a range of whole pages. Returns 0; GP_E_INVALID if something is already mapped there; or
 * -ENOMEM if the process's limit for address space is exceeded. */
GP_MUST_CHECK int gpc_window_reserve(uint64_t base, uint64_t size);
/* Releases a reserved range. */
void gpc_window_release(uint64_t base, uint64_t size);
/* Reserves a range of whole pages at a fixed address. Returns 0, also without a reservation for
 * addresses that no process can map. Returns GP_E_INVALID if something is mapped there or mapping
 * is not allowed, or -ENOMEM or -EAGAIN if this process cannot map more. */
GP_MUST_CHECK int gpc_window_reserve_pages(uint64_t base, uint64_t size);

/* Lists the mapped address ranges of this process in ascending order; ranges with gaps of less than
 * 64 GiB between them are merged. Returns 0, and the caller frees *ranges_p. Returns a negative
 * errno on failure, with both outputs unchanged. */
GP_MUST_CHECK int gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p);

#endif /* GPC_WINDOW_H */
