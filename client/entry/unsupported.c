/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log.h"
#include "client/base/unsupported_feature.h"
#include "client/entry/entry.h"
#include "client/guard/guard.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENTRIES_MAX = 1024,
};

/* Symbols that have been reported to the user. */
static atomic_bool reported[ENTRIES_MAX];

CUresult
gpc_unsupported(size_t entry)
{
	const struct gpc_entry_info *info = &gpc_entries[entry];

	if (info->reported && entry < ENTRIES_MAX && !atomic_load(&reported[entry]) &&
	    gpc_guard_enter()) {
		if (!atomic_exchange(&reported[entry], true))
			gpc_not_supported_report(info->name, info->instead);
		gpc_guard_leave();
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void
tools_report(void)
{
	static atomic_bool tools_reported;

	if (!gpc_log_is_enabled(GPC_LOG_QUIET) && !atomic_exchange(&tools_reported, true))
		gpc_log_always("NVIDIA's profilers and checkers (CUPTI, Nsight, compute-sanitizer) "
			       "cannot see a remote GPU; instead: GPUPOOL_TRACE=FILE writes a "
			       "timeline (GPUPOOL_LOG=quiet hides this message)");
}

void
gpc_unsupported_table(const CUuuid *table)
{
	/* Tables that CUPTI of CUDA 13 and compute-sanitizer query first, and that CUPTI of CUDA 12
	 * queries. */
	static const unsigned char tools[][sizeof(table->bytes)] = {
		{ 0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71, 0x9f,
		  0xe5, 0xf7, 0x4b },
		{ 0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42, 0xa4, 0x84, 0xbe, 0xb6, 0x6e,
		  0x6a, 0xed, 0x7f },
	};

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (memcmp(tools[i], table->bytes, sizeof(tools[i])) == 0)
			tools_report();
	}
}

void
gpc_unsupported_injection(void)
{
	const char *library = getenv("CUDA_INJECTION64_PATH");

	if (library && *library)
		tools_report();
}

CUresult
gpc_passthrough_not_supported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
