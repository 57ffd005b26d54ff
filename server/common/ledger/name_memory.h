/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's names take of the machine's memory, counted in the ledger.  The executor adds
 * and removes; what the GPU may still use is counted until another thread has destroyed it: the
 * executor says that it leaves, the other thread that it has gone.
 */
#ifndef GPD_NAME_MEMORY_H
#define GPD_NAME_MEMORY_H

#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero: of nobody, and everything is allowed. */
struct gpd_name_memory {
	struct gpd_ledger *ledger;
	struct gpd_ledger_session *line;
	_Atomic uint64_t used;     /* bytes */
	_Atomic uint64_t deferred; /* of what is used */
};

/* False, and nothing is added: there is no more for this session. */
bool gpd_name_memory_add(struct gpd_name_memory *memory, uint64_t bytes);
void gpd_name_memory_remove(struct gpd_name_memory *memory, uint64_t bytes);
/* So much of what was added is another thread's to end, which then says so. */
void gpd_name_memory_defer(struct gpd_name_memory *memory, uint64_t bytes);
void gpd_name_memory_complete(struct gpd_name_memory *memory, uint64_t bytes);
/* Nothing is used any more. */
void gpd_name_memory_fini(struct gpd_name_memory *memory);

#endif /* GPD_NAME_MEMORY_H */
