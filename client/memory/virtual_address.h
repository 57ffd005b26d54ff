/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of addresses for the application (cuMemAddressReserve): small ones from the
 * session's window, large ones besides it, at addresses that the daemon chooses and this process
 * has free. Any thread may call.
 */
#ifndef GPC_VIRTUAL_ADDRESS_H
#define GPC_VIRTUAL_ADDRESS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;

struct gpc_virtual_address {
	uint64_t base;              /* as the application has it */
	uint64_t whole, whole_size; /* what was taken for it */
	bool besides;               /* the window */
};

/* alignment: a power of two, or 0.  context names the session. */
CUresult gpc_virtual_address_reserve(struct gpc_context *context, uint64_t size, uint64_t alignment,
				     struct gpc_virtual_address *address);
/* What was mapped there has been unmapped. */
void gpc_virtual_address_free(struct gpc_context *context,
			      const struct gpc_virtual_address *address);

#endif /* GPC_VIRTUAL_ADDRESS_H */
