/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/entry.h"

#include "client/base/config.h"
#include "client/base/machine_library.h"
#include "nvml/nvml.h"
#include "nvml/pool.h"

#include <dlfcn.h>
#include <stdbool.h>

int
gpn_not_supported(void)
{
	return gpn_check_arguments(true) == GPN_SUCCESS ? GPN_NOT_SUPPORTED : GPN_UNINITIALIZED;
}

/* For symbols that the machine's own library does not have because it is too old. */
static int
function_not_found(void)
{
	return GPN_FUNCTION_NOT_FOUND;
}

/* Excludes other copies of this library, whose functions would lead back to this one. */
static bool
library_is_nvml(void *library)
{
	int (*table)(const void **, const unsigned char *);
	const void *found;

	*(void **)&table = dlsym(library, "nvmlInternalGetExportTable");
	return dlsym(library, "nvmlInit_v2") &&
	       !(table && table(&found, gpn_table_id) == GPN_SUCCESS);
}

__attribute__((constructor)) static void
entries_fill(void)
{
	void *library =
		gpc_config_has_remote()
			? NULL
			: gpc_machine_library_open("libnvidia-ml.so.1", gpn_entry, library_is_nvml);

	for (size_t i = 0; i < gpn_entry_count; i++) {
		void *ours = gpn_entries[i].ours ? gpn_entries[i].ours : (void *)gpn_not_supported;
		void *theirs = library ? dlsym(library, gpn_entries[i].name) : NULL;

		gpn_entry[i] = theirs ? theirs : library ? (void *)function_not_found : ours;
	}
}
