/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/passthrough.h"

#include "client/base/machine_library.h"
#include "client/entry/entry.h"

#include <dlfcn.h>

const CUuuid gpc_passthrough_table_id = { "gpupool client\0" };

/* A second copy of this library must not be used as the driver, as it would lead back to this
 * one. */
static bool
library_is_driver(void *library)
{
	CUresult (*table)(const void **, const CUuuid *);
	const void *found;

	*(void **)&table = dlsym(library, "cuGetExportTable");
	return dlsym(library, "cuInit") &&
	       !(table && table(&found, &gpc_passthrough_table_id) == CUDA_SUCCESS);
}

void
gpc_entries_fill(bool traced)
{
	for (size_t i = 0; i < gpc_entry_count; i++)
		gpc_entry[i] = traced ? gpc_entries[i].traced : gpc_entries[i].ours;
}

bool
gpc_passthrough_start(void)
{
	void *library = gpc_machine_library_open("libcuda.so.1", gpc_entry, library_is_driver);

	for (size_t i = 0; library && i < gpc_entry_count; i++) {
		void *function = dlsym(library, gpc_entries[i].name);

		gpc_entry[i] = function ? function : (void *)gpc_passthrough_not_supported;
	}
	return library != NULL;
}
