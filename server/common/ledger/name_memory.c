/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/name_memory.h"

#include <stdatomic.h>

/* The ledger hears of so much at once, and of what has gone when it is several times that. */
#define BATCH ((uint64_t)64 << 10)
#define IDLE_MAX (4 * BATCH)

/* What other threads have ended. */
static void
take_off_gone(struct gpd_name_memory *memory)
{
	uint64_t gone = atomic_exchange_explicit(&memory->gone, 0, memory_order_relaxed);

	memory->leaving -= gone;
	gpd_name_memory_remove(memory, gone);
}

bool
gpd_name_memory_add(struct gpd_name_memory *memory, uint64_t bytes)
{
	uint64_t missing, batch;

	if (memory->leaving)
		take_off_gone(memory);
	missing =
		memory->used + bytes > memory->counted ? memory->used + bytes - memory->counted : 0;
	batch = (missing + BATCH - 1) / BATCH * BATCH;
	if (missing && memory->ledger) {
		if (!gpd_ledger_take_host(memory->ledger, memory->line, batch))
			return false;
		memory->counted += batch;
	}
	memory->used += bytes;
	return true;
}

static void
let_go_down_to(struct gpd_name_memory *memory, uint64_t counted)
{
	gpd_ledger_give_host(memory->ledger, memory->line, memory->counted - counted);
	memory->counted = counted;
}

void
gpd_name_memory_remove(struct gpd_name_memory *memory, uint64_t bytes)
{
	memory->used -= bytes;
	if (memory->ledger && memory->counted - memory->used >= IDLE_MAX)
		let_go_down_to(memory, (memory->used + BATCH - 1) / BATCH * BATCH);
}

void
gpd_name_memory_leave(struct gpd_name_memory *memory, uint64_t bytes)
{
	memory->leaving += bytes;
}

void
gpd_name_memory_gone(struct gpd_name_memory *memory, uint64_t bytes)
{
	atomic_fetch_add_explicit(&memory->gone, bytes, memory_order_relaxed);
}

void
gpd_name_memory_fini(struct gpd_name_memory *memory)
{
	if (memory->ledger)
		let_go_down_to(memory, 0);
	*memory = (struct gpd_name_memory){ 0 };
}
