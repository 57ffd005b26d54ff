/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log.h"
#include "client/entry/entry.h"

#include <stdatomic.h>

enum {
	ENTRIES_MAX = 1024,
};

/* Which symbols the user has been told of. */
static atomic_bool told[ENTRIES_MAX];

CUresult
gpc_unsupported(size_t entry)
{
	const struct gpc_entry_info *info = &gpc_entries[entry];

	if (info->told && entry < ENTRIES_MAX && !gpc_log_wants(GPC_LOG_QUIET) &&
	    !atomic_exchange(&told[entry], true))
		gpc_log_always("%s is not supported%s%s (GPUPOOL_LOG=quiet: not a word of it)",
			       info->name, info->instead ? "; instead: " : "",
			       info->instead ? info->instead : "");
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
gpc_absent(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
