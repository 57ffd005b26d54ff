/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/jit_options.h"

#include <stdint.h>
#include <string.h>

/* Returns a pointer to the value of the option, or NULL. */
static void **
option_find(const struct gpc_jit_options *options, CUjit_option key)
{
	for (unsigned int i = 0; i < options->count; i++) {
		if (options->keys[i] == key)
			return &options->values[i];
	}
	return NULL;
}

CUresult
gpc_jit_options_check_keys(const struct gpc_jit_options *options)
{
	if (options->count > 0 && (!options->keys || !options->values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < options->count; i++) {
		if ((unsigned int)options->keys[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_jit_options_check(const struct gpc_jit_options *options)
{
	CUresult result = gpc_jit_options_check_keys(options);

	for (unsigned int i = 0; i < options->count && result == CUDA_SUCCESS; i++) {
		if (options->keys[i] == CU_JIT_MAX_REGISTERS && !options->values[i])
			result = CUDA_ERROR_INVALID_VALUE;
	}
	return result;
}

struct gpc_jit_log
gpc_jit_log_find(const struct gpc_jit_options *options, bool error)
{
	void **buffer =
		option_find(options, error ? CU_JIT_ERROR_LOG_BUFFER : CU_JIT_INFO_LOG_BUFFER);
	void **size = option_find(options, error ? CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
						 : CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);

	return (struct gpc_jit_log){
		.text = buffer ? *buffer : NULL,
		.capacity = size ? (unsigned int)(uintptr_t)*size : 0,
		.size_p = size,
	};
}

void
gpc_jit_log_fill(const struct gpc_jit_log *log, struct gp_bytes text)
{
	size_t length;

	if (!log->text || log->capacity == 0)
		return;
	length = text.size < log->capacity ? text.size : log->capacity - 1;
	if (length > 0)
		memcpy(log->text, text.data, length);
	log->text[length] = '\0';
	/* CU_JIT_*_LOG_BUFFER_SIZE_BYTES: on output, the number of bytes written. */
	*log->size_p = (void *)(uintptr_t)length;
}

void
gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result, struct gp_bytes log)
{
	void **wall_time = option_find(options, CU_JIT_WALL_TIME);

	if (wall_time)
		*wall_time = NULL;
	for (int error = 0; error < 2; error++) {
		const struct gpc_jit_log buffer = gpc_jit_log_find(options, error);
		bool written = error == (result != CUDA_SUCCESS);

		gpc_jit_log_fill(&buffer, written ? log : (struct gp_bytes){ 0 });
	}
}
