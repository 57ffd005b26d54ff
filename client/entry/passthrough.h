/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the target of the exported functions: this library or, if no daemon is named, the
 * machine's own CUDA driver (pass-through).
 *
 * Threads: the constructor (init.c) calls the functions while the library is loaded, on one thread;
 * gpc_entry[] (entry.h) never changes afterwards.
 */
#ifndef GPC_PASSTHROUGH_H
#define GPC_PASSTHROUGH_H

#include <cuda.h>
#include <stdbool.h>

/* Fills gpc_entry[] with this library's functions or, if `traced` is set, with the variants that
 * record each call in the timeline (client/base/trace.h). */
void gpc_entries_fill(bool traced);

/* Opens the machine's driver (client/base/machine_library.h) and fills gpc_entry[] with its
 * functions. Symbols that the driver lacks return CUDA_ERROR_NOT_SUPPORTED. The driver is never
 * closed. Returns false, with gpc_entry[] unchanged, if there is no driver. Reports as
 * gpc_machine_library_open() does. */
bool gpc_passthrough_start(void);

/* Table ID that only this library's cuGetExportTable accepts: by it one copy of the library
 * recognizes another. */
extern const CUuuid gpc_passthrough_table_id;

#endif /* GPC_PASSTHROUGH_H */
