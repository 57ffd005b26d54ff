/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: core dumps of the GPU.  None can be made of a GPU that is elsewhere, so to
 * switch them on is refused; the other settings are kept to be asked for.  A context has the
 * application's where it has none of its own.
 */
#include "base/lock.h"
#include "client/base/lacks.h"
#include "client/context/context.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 1024
#define FLAGS_KNOWN (CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT)

struct settings {
	struct settings *next;
	uint64_t context; /* its number; 0: the application */
	bool has[CU_COREDUMP_MAX];
	int numbers[CU_COREDUMP_MAX];
	char texts[CU_COREDUMP_MAX][TEXT_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* For ever: numbers of contexts are not used again, and few set anything. */
static struct settings *all GP_GUARDED_BY(lock);

static bool
is_text(CUcoredumpSettings attribute)
{
	return attribute == CU_COREDUMP_FILE || attribute == CU_COREDUMP_PIPE;
}

static size_t
size_of(CUcoredumpSettings attribute)
{
	if (is_text(attribute))
		return TEXT_MAX;
	return attribute == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int) : sizeof(bool);
}

static bool
is_known(CUcoredumpSettings attribute)
{
	return attribute >= CU_COREDUMP_ENABLE_ON_EXCEPTION && attribute < CU_COREDUMP_MAX;
}

/* NULL: it has set nothing. */
static struct settings *
find(uint64_t context) GP_LOCKED(lock)
{
	struct settings *settings = all;

	while (settings && settings->context != context)
		settings = settings->next;
	return settings;
}

static void
write_default(CUcoredumpSettings attribute, void *value)
{
	char host[256] = "";

	memset(value, 0, size_of(attribute));
	if (attribute == CU_COREDUMP_TRIGGER_HOST)
		*(bool *)value = true;
	if (!is_text(attribute))
		return;
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(value, TEXT_MAX, "%s.cuda.%s.%ld",
		       attribute == CU_COREDUMP_FILE ? "core" : "corepipe", host, (long)getpid());
}

static CUresult
get(uint64_t context, CUcoredumpSettings attribute, void *value, size_t *size)
{
	const struct settings *settings;

	if (!is_known(attribute) || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (value && *size < size_of(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	*size = size_of(attribute);
	if (!value)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&lock);
	settings = find(context);
	if (!settings || !settings->has[attribute])
		settings = find(0);
	if (!settings || !settings->has[attribute])
		write_default(attribute, value);
	else if (is_text(attribute))
		memcpy(value, settings->texts[attribute], TEXT_MAX);
	else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		*(int *)value = settings->numbers[attribute];
	else
		*(bool *)value = settings->numbers[attribute];
	(void)pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult
check(CUcoredumpSettings attribute, const void *value, const size_t *size)
{
	if (!is_known(attribute) || !value || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_text(attribute))
		return *size > 0 && strnlen(value, *size) < TEXT_MAX ? CUDA_SUCCESS
								     : CUDA_ERROR_INVALID_VALUE;
	if (*size < size_of(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		return *(const int *)value & ~FLAGS_KNOWN ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	/* Nobody could make one. */
	if (*(const bool *)value && (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION ||
				     attribute == CU_COREDUMP_ENABLE_USER_TRIGGER))
		return gpc_lacks(GPC_LACK_CORE_DUMP);
	return CUDA_SUCCESS;
}

static void
keep(struct settings *settings, CUcoredumpSettings attribute, const void *value, size_t size)
{
	settings->has[attribute] = true;
	if (is_text(attribute))
		(void)snprintf(settings->texts[attribute], TEXT_MAX, "%.*s",
			       (int)strnlen(value, size), (const char *)value);
	else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		settings->numbers[attribute] = *(const int *)value;
	else
		settings->numbers[attribute] = *(const bool *)value;
}

static CUresult
set(uint64_t context, CUcoredumpSettings attribute, const void *value, const size_t *size)
{
	CUresult result = check(attribute, value, size);
	struct settings *settings;

	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&lock);
	settings = find(context);
	if (!settings) {
		settings = calloc(1, sizeof(*settings));
		if (settings) {
			settings->context = context;
			settings->next = all;
			all = settings;
		}
	}
	if (settings)
		keep(settings, attribute, value, *size);
	(void)pthread_mutex_unlock(&lock);
	return settings ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	return result == CUDA_SUCCESS ? get(context->number, attrib, value, size) : result;
}

CUresult
gpc_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUresult result = gpc_enter_local();

	return result == CUDA_SUCCESS ? get(0, attrib, value, size) : result;
}

CUresult
gpc_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	return result == CUDA_SUCCESS ? set(context->number, attrib, value, size) : result;
}

CUresult
gpc_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUresult result = gpc_enter_local();

	return result == CUDA_SUCCESS ? set(0, attrib, value, size) : result;
}
