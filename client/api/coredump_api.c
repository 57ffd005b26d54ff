/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: core dumps of the GPU. A core dump of a remote GPU cannot be made, so enabling
 * one is refused; the other settings are stored and returned. A setting that a context lacks is
 * that of the application.
 */
#include "base/lock.h"
#include "client/base/unsupported_feature.h"
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
	uint64_t context; /* number of the context; 0: the application */
	bool has[CU_COREDUMP_MAX];
	int numbers[CU_COREDUMP_MAX];
	char texts[CU_COREDUMP_MAX][TEXT_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Never freed: context numbers are not reused, and few contexts have settings. */
static struct settings *all_settings GP_GUARDED_BY(lock);

static bool
attribute_is_text(CUcoredumpSettings attribute)
{
	return attribute == CU_COREDUMP_FILE || attribute == CU_COREDUMP_PIPE;
}

static size_t
attribute_get_size(CUcoredumpSettings attribute)
{
	if (attribute_is_text(attribute))
		return TEXT_MAX;
	return attribute == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int) : sizeof(bool);
}

static bool
attribute_is_known(CUcoredumpSettings attribute)
{
	return attribute >= CU_COREDUMP_ENABLE_ON_EXCEPTION && attribute < CU_COREDUMP_MAX;
}

/* Returns NULL if the context has no settings. */
static struct settings *
settings_find(uint64_t context) GP_LOCKED(lock)
{
	struct settings *settings = all_settings;

	while (settings && settings->context != context)
		settings = settings->next;
	return settings;
}

static void
attribute_write_default(CUcoredumpSettings attribute, void *value)
{
	char host[256] = "";

	memset(value, 0, attribute_get_size(attribute));
	if (attribute == CU_COREDUMP_TRIGGER_HOST)
		*(bool *)value = true;
	if (!attribute_is_text(attribute))
		return;
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(value, TEXT_MAX, "%s.cuda.%s.%ld",
		       attribute == CU_COREDUMP_FILE ? "core" : "corepipe", host, (long)getpid());
}

static CUresult
attribute_get(uint64_t context, CUcoredumpSettings attribute, void *value, size_t *size)
{
	const struct settings *settings;

	if (!attribute_is_known(attribute) || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (value && *size < attribute_get_size(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	*size = attribute_get_size(attribute);
	if (!value)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&lock);
	settings = settings_find(context);
	if (!settings || !settings->has[attribute])
		settings = settings_find(0);
	if (!settings || !settings->has[attribute])
		attribute_write_default(attribute, value);
	else if (attribute_is_text(attribute))
		memcpy(value, settings->texts[attribute], TEXT_MAX);
	else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		*(int *)value = settings->numbers[attribute];
	else
		*(bool *)value = settings->numbers[attribute];
	(void)pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult
attribute_check(CUcoredumpSettings attribute, const void *value, const size_t *size)
{
	if (!attribute_is_known(attribute) || !value || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute_is_text(attribute))
		return *size > 0 && strnlen(value, *size) < TEXT_MAX ? CUDA_SUCCESS
								     : CUDA_ERROR_INVALID_VALUE;
	if (*size < attribute_get_size(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		return *(const int *)value & ~FLAGS_KNOWN ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	/* No core dump can be made of a remote GPU. */
	if (*(const bool *)value && (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION ||
				     attribute == CU_COREDUMP_ENABLE_USER_TRIGGER))
		return gpc_not_supported(GPC_UNSUPPORTED_CORE_DUMP);
	return CUDA_SUCCESS;
}

static void
attribute_store(struct settings *settings, CUcoredumpSettings attribute, const void *value,
		size_t size)
{
	settings->has[attribute] = true;
	if (attribute_is_text(attribute))
		(void)snprintf(settings->texts[attribute], TEXT_MAX, "%.*s",
			       (int)strnlen(value, size), (const char *)value);
	else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		settings->numbers[attribute] = *(const int *)value;
	else
		settings->numbers[attribute] = *(const bool *)value;
}

static CUresult
attribute_set(uint64_t context, CUcoredumpSettings attribute, const void *value, const size_t *size)
{
	CUresult result = attribute_check(attribute, value, size);
	struct settings *settings;

	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&lock);
	settings = settings_find(context);
	if (!settings) {
		settings = calloc(1, sizeof(*settings));
		if (settings) {
			settings->context = context;
			settings->next = all_settings;
			all_settings = settings;
		}
	}
	if (settings)
		attribute_store(settings, attribute, value, *size);
	(void)pthread_mutex_unlock(&lock);
	return settings ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	return result == CUDA_SUCCESS ? attribute_get(context->number, attrib, value, size)
				      : result;
}

CUresult
gpc_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUresult result = gpc_enter_local();

	return result == CUDA_SUCCESS ? attribute_get(0, attrib, value, size) : result;
}

CUresult
gpc_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	return result == CUDA_SUCCESS ? attribute_set(context->number, attrib, value, size)
				      : result;
}

CUresult
gpc_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUresult result = gpc_enter_local();

	return result == CUDA_SUCCESS ? attribute_set(0, attrib, value, size) : result;
}
