/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/name_memory.h"

/* The ledger hears of so much at once, and of what has gone when it is several times that. */
#define BATCH ((uint64_t)64 << 10)
#define IDLE_MAX (4 * BATCH)

bool
gpd_tally_add(struct gpd_tally *tally, uint64_t bytes)
{
	uint64_t missing =
		tally->used + bytes > tally->counted ? tally->used + bytes - tally->counted : 0;
	uint64_t batch = (missing + BATCH - 1) / BATCH * BATCH;

	if (missing && tally->ledger) {
		if (!gpd_ledger_hold(tally->ledger, tally->line, batch))
			return false;
		tally->counted += batch;
	}
	tally->used += bytes;
	return true;
}

static void
let_go_down_to(struct gpd_tally *tally, uint64_t counted)
{
	gpd_ledger_let_go(tally->ledger, tally->line, tally->counted - counted);
	tally->counted = counted;
}

void
gpd_tally_remove(struct gpd_tally *tally, uint64_t bytes)
{
	tally->used -= bytes;
	if (tally->ledger && tally->counted - tally->used >= IDLE_MAX)
		let_go_down_to(tally, (tally->used + BATCH - 1) / BATCH * BATCH);
}

void
gpd_tally_fini(struct gpd_tally *tally)
{
	if (tally->ledger)
		let_go_down_to(tally, 0);
	*tally = (struct gpd_tally){ 0 };
}
