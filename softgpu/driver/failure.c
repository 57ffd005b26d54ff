/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of a kernel, which all later calls return. */
#include "softgpu/driver/driver.h"
#include "softgpu/driver/stream/stream.h"

#include <pthread.h>
#include <stdio.h>

static struct {
	pthread_mutex_t lock;
	int code;
} failure = { .lock = PTHREAD_MUTEX_INITIALIZER };

CUresult
gs_failure(void)
{
	return (CUresult)__atomic_load_n(&failure.code, __ATOMIC_ACQUIRE);
}

void
gs_fail(CUresult code, const char *who, const char *why)
{
	pthread_mutex_lock(&failure.lock);
	if (!failure.code) {
		/* A failed assertion has already printed its message. */
		if (code != CUDA_ERROR_ASSERT)
			fprintf(stderr, "gpupool software device: %s: %s (%d): %s\n", who,
				gs_error_name(code), (int)code, why);
		__atomic_store_n(&failure.code, (int)code, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&failure.lock);
	gs_stream_stop_all();
}
