/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/name_memory.h"

#include <stdatomic.h>

bool
gpd_name_memory_add(struct gpd_name_memory *memory, uint64_t bytes)
{
	if (memory->ledger && !gpd_ledger_charge_host(memory->ledger, memory->entry, bytes))
		return false;
	atomic_fetch_add(&memory->used, bytes);
	return true;
}

void
gpd_name_memory_remove(struct gpd_name_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub(&memory->used, bytes);
	if (memory->ledger)
		gpd_ledger_uncharge_host(memory->ledger, memory->entry, bytes);
}

void
gpd_name_memory_defer(struct gpd_name_memory *memory, uint64_t bytes)
{
	atomic_fetch_add(&memory->deferred, bytes);
}

void
gpd_name_memory_complete(struct gpd_name_memory *memory, uint64_t bytes)
{
	atomic_fetch_sub(&memory->deferred, bytes);
	gpd_name_memory_remove(memory, bytes);
}

void
gpd_name_memory_fini(struct gpd_name_memory *memory)
{
	gpd_name_memory_remove(memory, atomic_load(&memory->used));
	*memory = (struct gpd_name_memory){ 0 };
}
