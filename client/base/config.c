/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/config.h"

#include "base/edit_distance.h"
#include "base/environment.h"
#include "client/base/log.h"
#include "client/base/pools.h"
#include "protocol/frame.h"
#include "transport/timeout.h"
#include "transport/transport.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_TEXT_SIZE 37
#define WAIT_MAX_S (7 * 24 * 3600u)

extern char **environ;

/* Returns the value, or NULL if it is not set or empty. */
static const char *
environment_get(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text ? text : NULL;
}

/* For variables of CUDA itself: honors changes by the program with setenv(). */
static const char *
environment_get_cuda(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

bool
gpc_config_has_remote(void)
{
	return environment_get("REMOTE_GPU") || environment_get("RCUDA_DEVICE_COUNT");
}

bool
gpc_config_has_credentials(void)
{
	return environment_get("GPUPOOL_TLS_CA") || environment_get("GPUPOOL_TLS_CERT") ||
	       environment_get("GPUPOOL_TLS_KEY") || environment_get("GPUPOOL_TLS_CRL") ||
	       environment_get("GPUPOOL_TOKEN_FILE");
}

bool
gpc_config_find_misspelled(char *name, size_t size)
{
	static const char meant[] = "REMOTE_GPU";

	for (char **variable = environ; variable && *variable; variable++) {
		size_t length = strcspn(*variable, "=");

		if (length >= size || length == 0)
			continue;
		memcpy(name, *variable, length);
		name[length] = '\0';
		/* Distance 1; or 2 if the name contains GPU, so that names such as REMOTE_IP do not
		 * match. */
		if (strcmp(name, meant) != 0 &&
		    gp_edit_distance(name, meant) <= (strcasestr(name, "GPU") ? 2u : 1u))
			return true;
	}
	return false;
}

static int GP_PRINTF(4, 5)
	variable_fail(char *error, size_t error_size, const char *name, const char *format, ...)
{
	char what[320];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	(void)snprintf(error, error_size, "%s=%s: %s", name,
		       gp_environment_get(name) ? gp_environment_get(name) : "", what);
	return GP_E_INVALID;
}

/* rCUDA's syntax is SERVER[@PORT][:GPU]; the default GPU is 0. */
static int
rcuda_parse_device(int number, struct gp_url *url, char *error, size_t error_size)
{
	char name[32], host[GP_URL_TEXT_MAX], text[GP_URL_TEXT_MAX + 32], why[256];
	const char *value, *port, *device;
	int r;

	(void)snprintf(name, sizeof(name), "RCUDA_DEVICE_%d", number);
	value = environment_get(name);
	if (!value)
		return variable_fail(error, error_size, name,
				     "not set, but RCUDA_DEVICE_COUNT is greater");
	port = strchr(value, '@');
	device = strchr(port ? port : value, ':');
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(value, "@:"), value);
	(void)snprintf(text, sizeof(text), "%s%s%.*s/%s", host, port ? ":" : "",
		       port ? (int)strcspn(port + 1, ":") : 0, port ? port + 1 : "",
		       device ? device + 1 : "0");
	r = gp_url_parse(text, url, why, sizeof(why));
	return r ? variable_fail(error, error_size, name, "%s", why) : 0;
}

static int
rcuda_parse(struct gp_url *urls, int max, int *count_p, char *error, size_t error_size)
{
	static const char name[] = "RCUDA_DEVICE_COUNT";
	char *end;
	long count = strtol(environment_get(name), &end, 10);
	int r = 0;

	if (*end || count < 1 || count > max)
		return variable_fail(error, error_size, name, "not a number of devices");
	for (int i = 0; r == 0 && i < count; i++)
		r = rcuda_parse_device(i, &urls[i], error, error_size);
	*count_p = (int)count;
	return r;
}

/* A host without a scheme gets TLS if this user has credentials, or a pool with TLS for it: a token
 * is never sent in clear text. text: the list of addresses; NULL: no address has a scheme. */
static void
urls_default_to_tls(const char *text, struct gp_url *urls, int count)
{
	bool all = gpc_config_has_credentials();

	for (int i = 0; i < count; i++) {
		size_t length = text ? strcspn(text, ",") : 0;

		if (strcmp(urls[i].scheme, GP_URL_DEFAULT_SCHEME) == 0 &&
		    !(text && memmem(text, length, "://", 3)) &&
		    (all || gpc_pools_config_want_tls(&urls[i])))
			(void)snprintf(urls[i].scheme, sizeof(urls[i].scheme), "tls");
		if (text)
			text += length + (text[length] == ',');
	}
}

int
gpc_config_daemons(struct gp_url *urls, int max, int *count_p, char *error, size_t error_size)
{
	static const char name[] = "REMOTE_GPU";
	const char *text = environment_get(name);
	char why[256];
	int r;

	if (!text && environment_get("RCUDA_DEVICE_COUNT")) {
		r = rcuda_parse(urls, max, count_p, error, error_size);
		if (r == 0)
			urls_default_to_tls(NULL, urls, *count_p);
		return r;
	}
	if (!text) {
		(void)snprintf(error, error_size, "REMOTE_GPU is not set");
		return GP_E_INVALID;
	}
	if (gp_url_list_parse(text, urls, max, count_p, why, sizeof(why)) != 0)
		return variable_fail(error, error_size, name, "%s", why);
	urls_default_to_tls(text, urls, *count_p);
	return 0;
}

bool
gpc_config_parse_wait(const char *text, unsigned int *seconds_p)
{
	static const char units[] = "smh";
	static const unsigned int seconds[] = { 1, 60, 3600 };
	const char *unit;
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	value = strtoul(text, &end, 10);
	unit = *end ? strchr(units, *end) : units;
	if (!unit || (*end && end[1]) || value > WAIT_MAX_S / seconds[unit - units])
		return false;
	*seconds_p = (unsigned int)value * seconds[unit - units];
	return true;
}

int
gpc_config_get_wait(unsigned int *seconds_p, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_WAIT";
	const char *text = environment_get(name);

	*seconds_p = 0;
	if (!text || gpc_config_parse_wait(text, seconds_p))
		return 0;
	return variable_fail(error, error_size, name,
			     "invalid time: use 90, 90s, 10m or 2h, at most a week");
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
launch_blocking_read(void)
{
	const char *value = getenv("CUDA_LAUNCH_BLOCKING");

	launch_blocking = value && atoi(value) != 0;
}

bool
gpc_config_launch_blocking(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, launch_blocking_read);
	return launch_blocking;
}

static void
uuid_format(const CUuuid *uuid, char text[UUID_TEXT_SIZE])
{
	const unsigned char *b = (const unsigned char *)uuid->bytes;

	(void)snprintf(text, UUID_TEXT_SIZE,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
}

/* Returns -1 if no device, or more than one, has a UUID with this prefix. */
static int
device_find_by_uuid(const char *prefix, size_t len, const CUuuid *uuids, int count)
{
	int found = -1;

	for (int i = 0; i < count; i++) {
		char text[UUID_TEXT_SIZE];

		uuid_format(&uuids[i], text);
		if (len >= sizeof(text) || strncasecmp(text, prefix, len) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static int
device_find_by_entry(const char *entry, size_t len, const CUuuid *uuids, int count)
{
	int index = 0;

	if (len > 4 && strncasecmp(entry, "GPU-", 4) == 0)
		return device_find_by_uuid(entry + 4, len - 4, uuids, count);
	if (len == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)entry[i]) || index >= count)
			return -1;
		index = index * 10 + (entry[i] - '0');
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
		index = device_find_by_entry(list, len, uuids, count);
		/* NVIDIA's driver also ignores the list from the first invalid entry on. */
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

static int
options_parse_percentage(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
	const char *text = environment_get_cuda(name);
	double percent;
	char *end;

	if (!text)
		return 0;
	percent = strtod(text, &end);
	if (*end || !(percent > 0 && percent <= 100))
		return variable_fail(error, error_size, name, "not a number above 0 and up to 100");
	options->thread_percentage = (unsigned int)percent;
	options->thread_percentage += options->thread_percentage < percent;
	return 0;
}

static int
options_parse_priority(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_CLIENT_PRIORITY";
	const char *text = environment_get_cuda(name);

	if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return variable_fail(error, error_size, name,
				     "neither 0 (normal) nor 1 (below normal)");
	options->priority = text && *text == '1';
	return 0;
}

/* Syntax: "0=1G,1=512MB". The key "*" is an extension: all devices that are not listed. */
static int
options_parse_memory(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
	const char *text = environment_get_cuda(name);
	uint64_t others = 0;

	while (text && *text) {
		bool all = *text == '*';
		char *end = (char *)text + all;
		unsigned long ordinal = all ? 0 : strtoul(text, &end, 10);
		unsigned long long amount;
		int shift;

		if (end == text || *end != '=' || !isdigit((unsigned char)end[1]))
			return variable_fail(
				error, error_size, name,
				"\"%s\" does not begin with DEVICE=SIZE, as 0=16G does", text);
		if (ordinal >= GPC_SESSION_OPTIONS_DEVICES)
			return variable_fail(error, error_size, name, "invalid device %lu",
					     ordinal);
		amount = strtoull(end + 1, &end, 10);
		shift = toupper((unsigned char)*end) == 'G'   ? 30
			: toupper((unsigned char)*end) == 'M' ? 20
							      : 0;
		end += shift != 0;
		end += shift != 0 && toupper((unsigned char)*end) == 'B';
		if (!shift || (*end && *end != ',') || amount == 0 || amount > UINT64_MAX >> shift)
			return variable_fail(error, error_size, name,
					     "\"%s\": a size is a number followed by M or G", text);
		*(all ? &others : &options->memory[ordinal]) = (uint64_t)amount << shift;
		if (!all && options->memory_count <= (int)ordinal)
			options->memory_count = (int)ordinal + 1;
		text = end + (*end == ',');
	}
	for (int i = 0; others && i < GPC_SESSION_OPTIONS_DEVICES; i++) {
		if (!options->memory[i])
			options->memory[i] = others;
		options->memory_count = GPC_SESSION_OPTIONS_DEVICES;
	}
	return 0;
}

static int
options_parse_isolation(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_ISOLATION";
	const char *text = environment_get(name);

	options->isolation = GPC_ISOLATION_ANY;
	if (text && strcmp(text, "shared") == 0)
		options->isolation = GPC_ISOLATION_SHARED;
	else if (text && strcmp(text, "tenant") == 0)
		options->isolation = GPC_ISOLATION_TENANT;
	/* "process" is the former name. */
	else if (text && (strcmp(text, "session") == 0 || strcmp(text, "process") == 0))
		options->isolation = GPC_ISOLATION_SESSION;
	else if (text)
		return variable_fail(error, error_size, name,
				     "is not one of shared, tenant, session");
	return 0;
}

static int
options_parse_compression(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_COMPRESSION";
	const char *text = environment_get(name);

	if (!text || strcmp(text, "auto") == 0)
		options->compression = GP_PACK_AUTO;
	else if (strcmp(text, "on") == 0)
		options->compression = GP_PACK_ON;
	else if (strcmp(text, "off") == 0)
		options->compression = GP_PACK_OFF;
	else
		return variable_fail(error, error_size, name, "not one of auto, on, off");
	return 0;
}

static int
options_parse_lanes(struct gpc_session_options *options, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_LANES";
	const char *text = environment_get(name);
	unsigned long lanes;
	char *end;

	if (!text)
		return 0;
	lanes = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || lanes < 1 || lanes > GP_LANES_MAX)
		return variable_fail(error, error_size, name, "not a number from 1 to %d",
				     GP_LANES_MAX);
	options->lanes = (unsigned int)lanes;
	return 0;
}

/* Only checks: connections call gpc_config_timeout_ms(). */
static int
timeout_check(char *error, size_t error_size)
{
	char text[256];
	unsigned int ms;
	bool is_set;
	int r = gp_timeout_parse(environment_get(GP_TIMEOUT_NAME),
				 environment_get(GP_TIMEOUT_OLD_NAME), &ms, &is_set, text,
				 sizeof(text));

	if (r != 0)
		(void)snprintf(error, error_size, "%s", text);
	else if (*text)
		gpc_log_warn("%s", text);
	return r;
}

static int
shm_check(char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_SHM";
	const char *text = environment_get(name);

	if (!text || strcmp(text, "0") == 0 || strcmp(text, "1") == 0)
		return 0;
	return variable_fail(error, error_size, name, "neither 0 nor 1");
}

static int
managed_check(char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_MANAGED";
	const char *text = environment_get(name);

	if (!text || strcmp(text, "userfaultfd") == 0 || strcmp(text, "signal") == 0)
		return 0;
	return variable_fail(error, error_size, name, "neither userfaultfd nor signal");
}

void
gpc_config_check_log(void)
{
	const char *text = environment_get("GPUPOOL_LOG");
	char why[256];

	if (gpc_log_check(text, why, sizeof(why)) != 0)
		gpc_log_warn("GPUPOOL_LOG=%s: %s; ignored", text, why);
}

int
gpc_config_session_options(struct gpc_session_options *options, char *error, size_t error_size)
{
	int r;

	*options = (struct gpc_session_options){ .tenant = environment_get("GPUPOOL_TENANT") };
	r = options_parse_percentage(options, error, error_size);
	if (r == 0)
		r = options_parse_priority(options, error, error_size);
	if (r == 0)
		r = options_parse_memory(options, error, error_size);
	if (r == 0)
		r = options_parse_isolation(options, error, error_size);
	if (r == 0)
		r = options_parse_lanes(options, error, error_size);
	if (r == 0)
		r = options_parse_compression(options, error, error_size);
	if (r == 0)
		r = timeout_check(error, error_size);
	if (r == 0)
		r = shm_check(error, error_size);
	if (r == 0)
		r = managed_check(error, error_size);
	return r;
}

bool
gpc_config_is_shm_enabled(void)
{
	const char *text = environment_get("GPUPOOL_SHM");

	return !text || strcmp(text, "0") != 0;
}

unsigned int
gpc_config_timeout_ms(void)
{
	return gp_timeout_get_ms(environment_get(GP_TIMEOUT_NAME),
				 environment_get(GP_TIMEOUT_OLD_NAME));
}
