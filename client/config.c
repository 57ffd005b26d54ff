/* SPDX-License-Identifier: Apache-2.0 */
#include "client/config.h"

#include "transport/transport.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DAEMONS_MAX 8
#define UUID_TEXT_SIZE 37

bool
gpc_config_remote(void)
{
	const char *remote = getenv("REMOTE_GPU");

	return remote && *remote;
}

int
gpc_config_daemon(struct gp_url *url, char *error, size_t error_size)
{
	const char *text = getenv("REMOTE_GPU");
	struct gp_url urls[DAEMONS_MAX];
	char why[256];
	int count, r;

	if (!text || !*text) {
		(void)snprintf(error, error_size, "REMOTE_GPU is not set");
		return GP_E_INVALID;
	}
	r = gp_url_list_parse(text, urls, DAEMONS_MAX, &count, why, sizeof(why));
	if (r != 0) {
		(void)snprintf(error, error_size, "REMOTE_GPU=%s: %s", text, why);
		return GP_E_INVALID;
	}
	if (count > 1) {
		(void)snprintf(error, error_size,
			       "REMOTE_GPU=%s: %d daemons, but this version uses one only", text,
			       count);
		return GP_E_INVALID;
	}
	*url = urls[0];
	return 0;
}

CUmoduleLoadingMode
gpc_config_module_loading(void)
{
	const char *mode = getenv("CUDA_MODULE_LOADING");

	return mode && strcasecmp(mode, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
						      : CU_MODULE_LAZY_LOADING;
}

static bool launch_blocking;

static void
read_launch_blocking(void)
{
	const char *value = getenv("CUDA_LAUNCH_BLOCKING");

	launch_blocking = value && atoi(value) != 0;
}

bool
gpc_config_launch_blocking(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_launch_blocking);
	return launch_blocking;
}

static void
uuid_text(const CUuuid *uuid, char text[UUID_TEXT_SIZE])
{
	const unsigned char *b = (const unsigned char *)uuid->bytes;

	(void)snprintf(text, UUID_TEXT_SIZE,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
}

/* -1: none, or more than one begins like this. */
static int
device_by_uuid(const char *prefix, size_t len, const CUuuid *uuids, int count)
{
	int found = -1;

	for (int i = 0; i < count; i++) {
		char text[UUID_TEXT_SIZE];

		uuid_text(&uuids[i], text);
		if (len >= sizeof(text) || strncasecmp(text, prefix, len) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static int
device_by_word(const char *word, size_t len, const CUuuid *uuids, int count)
{
	int index = 0;

	if (len > 4 && strncasecmp(word, "GPU-", 4) == 0)
		return device_by_uuid(word + 4, len - 4, uuids, count);
	if (len == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)word[i]) || index >= count)
			return -1;
		index = index * 10 + (word[i] - '0');
	}
	return index < count ? index : -1;
}

int
gpc_config_visible_devices(const char *list, const CUuuid *uuids, int count, int *indices)
{
	int visible = 0;

	for (int i = 0; !list && i < count; i++)
		indices[visible++] = i;
	while (list && *list && visible < count) {
		size_t len;
		int index;

		list += strspn(list, " ");
		len = strcspn(list, ", ");
		index = device_by_word(list, len, uuids, count);
		/* The driver, too, ends the list at the first entry that it does not know. */
		if (index < 0)
			break;
		for (int i = 0; i < visible; i++) {
			if (indices[i] == index)
				return visible;
		}
		indices[visible++] = index;
		list += len;
		list += strspn(list, " ");
		list += *list == ',';
	}
	return visible;
}

unsigned int
gpc_config_thread_percentage(void)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	double percent = text ? strtod(text, NULL) : 0;

	return percent > 0 && percent < 100 ? (unsigned int)(percent + 0.999) : 0;
}

int
gpc_config_priority(void)
{
	const char *text = getenv("CUDA_MPS_CLIENT_PRIORITY");

	return text && strcmp(text, "1") == 0;
}

/* "0=1G,1=512MB" */
size_t
gpc_config_memory_limit(int device)
{
	const char *text = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");

	while (text && *text) {
		char *end;
		long ordinal = strtol(text, &end, 10);

		if (*end == '=') {
			unsigned long long amount = strtoull(end + 1, &end, 10);
			int unit = toupper((unsigned char)*end);

			if (ordinal == device && (unit == 'G' || unit == 'M'))
				return (size_t)amount << (unit == 'G' ? 30 : 20);
		}
		text = strchr(text, ',');
		text += text != NULL;
	}
	return 0;
}

unsigned int
gpc_config_stall_ms(void)
{
	return gp_conn_stall_of(getenv("GPUPOOL_STALL_MS"));
}
