/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's range of device addresses, reserved in this process so that nothing else comes to
 * lie there: a pointer is either the application's or the device's.
 */
#ifndef GPC_WINDOW_H
#define GPC_WINDOW_H

#include "protocol/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_window_range {
	uint64_t base, size;
};

/* GP_E_INVALID: something lies there already. */
GP_MUST_CHECK int gpc_window_reserve(uint64_t base, uint64_t size);
void gpc_window_release(uint64_t base, uint64_t size);
/* Whether this process has nothing mapped on any page of [base, base + size), which does not wrap.
 */
bool gpc_window_is_free(uint64_t base, uint64_t size);

/* Where this process has something mapped, neighbours joined; -errno.  The caller frees it. */
GP_MUST_CHECK int gpc_window_occupied(struct gpc_window_range **ranges_p, size_t *count_p);

#endif /* GPC_WINDOW_H */
