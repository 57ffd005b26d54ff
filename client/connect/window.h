/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window: the session's range of device addresses. It is reserved in this process (mapped without
 * access rights), so that no host memory is mapped there and every pointer is unambiguously a host
 * or a device pointer. The same functions reserve other ranges.
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

/* A range [base, base + size) of addresses in use. */
struct gpc_window_range {
	uint64_t base, size;
};

/* Reserves a range of whole pages. Returns 0; -ENOMEM if the process's limit for address space is
 * exceeded or the range is above its addresses; or GP_E_INVALID for any other reason, mostly
 * because something is already mapped there. */
GP_MUST_CHECK int gpc_window_reserve(uint64_t base, uint64_t size);
/* Releases a reserved range, or a part of it of whole pages. */
void gpc_window_release(uint64_t base, uint64_t size);
/* Reserves a range like gpc_window_reserve(), for pages of a module's variable, whose address the
 * daemon's driver has chosen. Returns 0, also without a reservation for addresses from 2^47 on,
 * which this process can usually not map. Returns -ENOMEM or -EAGAIN if this process cannot map
 * more, or GP_E_INVALID if something is mapped there or mapping is not allowed. */
GP_MUST_CHECK int gpc_window_reserve_pages(uint64_t base, uint64_t size);

/* Lists the mapped address ranges of this process in ascending order, for a request for another
 * window. Ranges with a gap of less than 64 GiB between them are merged. Returns 0, and the caller
 * frees *ranges_p with free(). Returns a negative errno on failure, with both outputs unchanged. */
GP_MUST_CHECK int gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p);

#endif /* GPC_WINDOW_H */
