/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/jit_options.h"

#include "gpd_calls.h"

#include <stdint.h>

#define LOGS 4

static void
option_add(struct gpd_jit_options *options, CUjit_option key, const void *value)
{
	options->keys[options->count] = key;
	options->values[options->count++] = (void *)value;
}

CUresult
gpd_jit_read(struct gpd_jit_options *options, struct gp_bytes bytes)
{
	return gpd_options_decode_CUjit_option(bytes, options->keys, options->values,
					       GPD_JIT_OPTIONS_MAX - LOGS, &options->count);
}

void
gpd_jit_add_logs(struct gpd_jit *jit)
{
	const void *size = (void *)(uintptr_t)(GPD_JIT_LOG_SIZE - 1);

	option_add(&jit->options, CU_JIT_INFO_LOG_BUFFER, jit->info);
	option_add(&jit->options, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, size);
	option_add(&jit->options, CU_JIT_ERROR_LOG_BUFFER, jit->error);
	option_add(&jit->options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, size);
}
