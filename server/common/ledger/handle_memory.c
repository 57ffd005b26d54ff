/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/handle_memory.h"

#include <stdatomic.h>

bool
gpd_handle_memory_add(struct gpd_handle_memory *memory, uint64_t bytes)
{
	if (memory->ledger && !gpd_ledger_charge_host(memory->ledger, memory->entry, bytes))
		return false;
	atomic_fetch_add(&memory->used, bytes);
	return true;
}

void
gpd_handle_memory_remove(struct gpd_handle_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub(&memory->used, bytes);
	if (memory->ledger)
		gpd_ledger_uncharge_host(memory->ledger, memory->entry, bytes);
}

void
gpd_handle_memory_defer(struct gpd_handle_memory *memory, uint64_t bytes)
{
	atomic_fetch_add(&memory->deferred, bytes);
}

void
gpd_handle_memory_complete(struct gpd_handle_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub(&memory->deferred, bytes);
	gpd_handle_memory_remove(memory, bytes);
}

void
gpd_handle_memory_fini(struct gpd_handle_memory *memory)
{
	gpd_handle_memory_remove(memory, atomic_load(&memory->used));
	*memory = (struct gpd_handle_memory){ 0 };
}
