/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: the error log. It works before cuInit() and is local to the process. Flags are
 * ignored, as in NVIDIA's driver. */
#include "client/base/log_history.h"
#include "gpc_calls.h"

#include <stdio.h>

CUresult
gpc_cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
			   CUlogsCallbackHandle *callback_out)
{
	void *listener;

	if (!callbackFunc)
		return CUDA_ERROR_INVALID_VALUE;
	listener = gpc_log_add_listener(callbackFunc, userData);
	if (!listener)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (callback_out)
		*callback_out = listener;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	return gpc_log_remove_listener(callback) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult
gpc_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	if (!iterator_out)
		return CUDA_ERROR_INVALID_VALUE;
	*iterator_out = gpc_log_history_next();
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	uint32_t next;

	if (!buffer || !size) {
		gpc_log_history_add("cuLogsDumpToMemory: no buffer for the log");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (gpc_log_history_dump(iterator ? *iterator : 0, buffer, size, &next))
		return CUDA_ERROR_INVALID_VALUE;
	if (iterator)
		*iterator = next;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	char buffer[(GPC_LOG_HISTORY_MAX + 1) * GPC_LOG_LINE_MAX];
	size_t size = sizeof(buffer);
	CUresult result;
	FILE *file;

	if (!pathToFile)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(pathToFile, "we");
	if (!file)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_cuLogsDumpToMemory(iterator, buffer, &size, 0);
	if (result == CUDA_SUCCESS && fwrite(buffer, 1, size, file) != size)
		result = CUDA_ERROR_INVALID_VALUE;
	if (fclose(file))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}
