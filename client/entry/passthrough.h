/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the exported functions lead: into this library, or, when no daemon is named, to the
 * machine's own driver.  Decided once, while the library is being loaded, by one thread.
 */
#ifndef GPC_PASSTHROUGH_H
#define GPC_PASSTHROUGH_H

#include <cuda.h>
#include <stdbool.h>

/* Our own functions, or with a line in the timeline for each call. */
void gpc_entries_fill(bool traced);

/* Those of the machine's driver, if there is one; whether there is. */
bool gpc_passthrough_start(void);

/* By asking cuGetExportTable for this table one copy of this library knows another. */
extern const CUuuid gpc_passthrough_table_id;

#endif /* GPC_PASSTHROUGH_H */
