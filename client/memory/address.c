/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/address.h"

#include "client/host/host_space.h"
#include "client/memory/globals.h"
#include "client/memory/host_memory.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "client/memory/virtual_memory.h"

void
gpc_address_lookup(uint64_t address, struct gpc_address *found)
{
	if (gpc_memory_find(address, found)) {
		if (found->kind == GPC_ADDRESS_INVALID && !gpc_pool_find(address, found) &&
		    !gpc_pool_find_imported(address, found) && !gpc_ipc_memory_find(address, found))
			(void)gpc_virtual_memory_find(address, found);
		return;
	}
	if (gpc_globals_find(address, found) || gpc_host_memory_find(address, found) ||
	    gpc_virtual_memory_find(address, found))
		return;
	*found = (struct gpc_address){ .kind = gpc_host_space_contains(address)
						       ? GPC_ADDRESS_INVALID
						       : GPC_ADDRESS_PAGEABLE };
}

bool
gpc_address_is_device(uint64_t address, size_t size)
{
	struct gpc_address found;

	gpc_address_lookup(address, &found);
	return found.kind == GPC_ADDRESS_DEVICE && size <= found.size - (address - found.base);
}
