/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/jit_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Options that stay here: buffers of the caller, and what is written to the caller. */
static bool
is_local(CUjit_option key)
{
	switch (key) {
	case CU_JIT_WALL_TIME:
	case CU_JIT_INFO_LOG_BUFFER:
	case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
	case CU_JIT_ERROR_LOG_BUFFER:
	case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
		return true;
	default:
		return false;
	}
}

static bool
is_scalar(CUjit_option key)
{
	switch (key) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
		return true;
	default:
		return false;
	}
}

CUresult
gpc_jit_options_encode(const struct gpc_jit_options *options, void **encoded_p,
		       struct gp_bytes *bytes_p)
{
	struct gp_enc enc;
	size_t size;
	void *memory;

	*encoded_p = NULL;
	*bytes_p = (struct gp_bytes){ 0 };
	if (!options || options->count == 0)
		return CUDA_SUCCESS;
	if (!options->keys || !options->values || options->count > 256)
		return CUDA_ERROR_INVALID_VALUE;
	size = (size_t)options->count * 16;
	memory = malloc(size);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, memory, size);
	for (unsigned int i = 0; i < options->count; i++) {
		if (is_local(options->keys[i]))
			continue;
		if (!is_scalar(options->keys[i])) {
			free(memory);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		gp_enc_u32(&enc, (uint32_t)options->keys[i]);
		gp_enc_u32(&enc, 0);
		gp_enc_u64(&enc, (uint64_t)(uintptr_t)options->values[i]);
	}
	*encoded_p = memory;
	*bytes_p = (struct gp_bytes){ memory, gp_enc_size(&enc) };
	return CUDA_SUCCESS;
}

/* Where an option stands, or NULL. */
static void **
value_of(const struct gpc_jit_options *options, CUjit_option key)
{
	for (unsigned int i = 0; options && i < options->count; i++) {
		if (options->keys[i] == key)
			return &options->values[i];
	}
	return NULL;
}

static void
fill(const struct gpc_jit_options *options, CUjit_option buffer_key, CUjit_option size_key,
     struct gp_bytes log)
{
	void **buffer = value_of(options, buffer_key);
	void **size = value_of(options, size_key);
	size_t room = size ? (size_t)(unsigned int)(uintptr_t)*size : 0;
	size_t length;

	if (!buffer || !*buffer || room == 0)
		return;
	length = log.size < room ? log.size : room - 1;
	if (length > 0)
		memcpy(*buffer, log.data, length);
	((char *)*buffer)[length] = '\0';
	/* CU_JIT_*_LOG_BUFFER_SIZE_BYTES: on output, how much was written. */
	*size = (void *)(uintptr_t)length;
}

void
gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result, struct gp_bytes log)
{
	struct gp_bytes none = { 0 };
	void **wall_time = value_of(options, CU_JIT_WALL_TIME);

	if (wall_time)
		*wall_time = NULL;
	fill(options, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
	     result == CUDA_SUCCESS ? none : log);
	fill(options, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
	     result == CUDA_SUCCESS ? log : none);
}
