/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's range of device addresses, reserved in this process so that nothing else comes to
 * lie there: a pointer is either the application's or the device's.
 */
#ifndef GPC_WINDOW_H
#define GPC_WINDOW_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct gpc_window_range {
	uint64_t base, size;
};

/* GP_E_INVALID: something lies there already.  -ENOMEM: the program may not have so many addresses.
 */
GP_MUST_CHECK int gpc_window_reserve(uint64_t base, uint64_t size);
void gpc_window_release(uint64_t base, uint64_t size);
/* The same of whole pages, for a place that cannot be chosen; where no process can have anything
 * nothing is reserved.  GP_E_INVALID: something lies there, or nothing may.  -ENOMEM, -EAGAIN: this
 * process may map no more. */
GP_MUST_CHECK int gpc_window_reserve_pages(uint64_t base, uint64_t size);

/* Where this process has something mapped, neighbours joined; -errno.  The caller frees it. */
GP_MUST_CHECK int gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p);

#endif /* GPC_WINDOW_H */
