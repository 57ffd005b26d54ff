/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/config.h"

#include "base/environment.h"
#include "base/similar.h"
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

/* Set and not empty, or NULL. */
static const char *
value_of(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text ? text : NULL;
}

/* One of CUDA's, which is what the program makes it. */
static const char *
cuda_value_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

bool
gpc_config_remote(void)
{
	return value_of("REMOTE_GPU") || value_of("RCUDA_DEVICE_COUNT");
}

bool
gpc_config_tls(void)
{
	return value_of("GPUPOOL_TLS_CA") || value_of("GPUPOOL_TLS_CERT") ||
	       value_of("GPUPOOL_TLS_KEY") || value_of("GPUPOOL_TLS_CRL") ||
	       value_of("GPUPOOL_TOKEN_FILE");
}

bool
gpc_config_misspelt(char *name, size_t size)
{
	static const char meant[] = "REMOTE_GPU";

	for (char **variable = environ; variable && *variable; variable++) {
		size_t length = strcspn(*variable, "=");

		if (length >= size || length == 0)
			continue;
		memcpy(name, *variable, length);
		name[length] = '\0';
		/* One letter, or two where it is of a GPU all the same: REMOTE_IP is not meant. */
		if (strcmp(name, meant) != 0 &&
		    gp_distance(name, meant) <= (strcasestr(name, "GPU") ? 2u : 1u))
			return true;
	}
	return false;
}

static int GP_PRINTF(4, 5)
	refuse(char *error, size_t error_size, const char *name, const char *format, ...)
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

/* rCUDA's SERVER[@PORT][:GPU]; without a GPU it is the first. */
static int
read_rcuda_device(int number, struct gp_url *url, char *error, size_t error_size)
{
	char name[32], host[GP_URL_TEXT_MAX], text[GP_URL_TEXT_MAX + 32], why[256];
	const char *value, *port, *device;
	int r;

	(void)snprintf(name, sizeof(name), "RCUDA_DEVICE_%d", number);
	value = value_of(name);
	if (!value)
		return refuse(error, error_size, name,
			      "not set, but RCUDA_DEVICE_COUNT is above it");
	port = strchr(value, '@');
	device = strchr(port ? port : value, ':');
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(value, "@:"), value);
	(void)snprintf(text, sizeof(text), "%s%s%.*s/%s", host, port ? ":" : "",
		       port ? (int)strcspn(port + 1, ":") : 0, port ? port + 1 : "",
		       device ? device + 1 : "0");
	r = gp_url_parse(text, url, why, sizeof(why));
	return r ? refuse(error, error_size, name, "%s", why) : 0;
}

static int
read_rcuda(struct gp_url *urls, int max, int *count_p, char *error, size_t error_size)
{
	static const char name[] = "RCUDA_DEVICE_COUNT";
	char *end;
	long count = strtol(value_of(name), &end, 10);
	int r = 0;

	if (*end || count < 1 || count > max)
		return refuse(error, error_size, name, "not a number of devices");
	for (int i = 0; r == 0 && i < count; i++)
		r = read_rcuda_device(i, &urls[i], error, error_size);
	*count_p = (int)count;
	return r;
}

/* A host without a scheme gets TLS where this user has credentials or a pool with it: a token is
 * never sent in clear.  text: the list; NULL: no address has a scheme. */
static void
secure_bare(const char *text, struct gp_url *urls, int count)
{
	bool all = gpc_config_tls();

	for (int i = 0; i < count; i++) {
		size_t length = text ? strcspn(text, ",") : 0;

		if (strcmp(urls[i].scheme, GP_URL_DEFAULT_SCHEME) == 0 &&
		    !(text && memmem(text, length, "://", 3)) &&
		    (all || gpc_pools_want_tls(&urls[i])))
			(void)snprintf(urls[i].scheme, sizeof(urls[i].scheme), "tls");
		if (text)
			text += length + (text[length] == ',');
	}
}

int
gpc_config_daemons(struct gp_url *urls, int max, int *count_p, char *error, size_t error_size)
{
	static const char name[] = "REMOTE_GPU";
	const char *text = value_of(name);
	char why[256];
	int r;

	if (!text && value_of("RCUDA_DEVICE_COUNT")) {
		r = read_rcuda(urls, max, count_p, error, error_size);
		if (r == 0)
			secure_bare(NULL, urls, *count_p);
		return r;
	}
	if (!text) {
		(void)snprintf(error, error_size, "REMOTE_GPU is not set");
		return GP_E_INVALID;
	}
	if (gp_url_list_parse(text, urls, max, count_p, why, sizeof(why)) != 0)
		return refuse(error, error_size, name, "%s", why);
	secure_bare(text, urls, *count_p);
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
gpc_config_wait(unsigned int *seconds_p, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_WAIT";
	const char *text = value_of(name);

	*seconds_p = 0;
	if (!text || gpc_config_parse_wait(text, seconds_p))
		return 0;
	return refuse(error, error_size, name, "no time: 90, 90s, 10m and 2h are, up to a week");
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

static int
read_percentage(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
	const char *text = cuda_value_of(name);
	double percent;
	char *end;

	if (!text)
		return 0;
	percent = strtod(text, &end);
	if (*end || !(percent > 0 && percent <= 100))
		return refuse(error, error_size, name, "not a number above 0 and up to 100");
	wish->thread_percentage = (unsigned int)percent;
	wish->thread_percentage += wish->thread_percentage < percent;
	return 0;
}

static int
read_priority(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_CLIENT_PRIORITY";
	const char *text = cuda_value_of(name);

	if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return refuse(error, error_size, name, "neither 0 (normal) nor 1 (below normal)");
	wish->priority = text && *text == '1';
	return 0;
}

/* "0=1G,1=512MB"; the star is ours: all devices that are not named. */
static int
read_memory(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
	const char *text = cuda_value_of(name);
	uint64_t others = 0;

	while (text && *text) {
		bool all = *text == '*';
		char *end = (char *)text + all;
		unsigned long ordinal = all ? 0 : strtoul(text, &end, 10);
		unsigned long long amount;
		int shift;

		if (end == text || *end != '=' || !isdigit((unsigned char)end[1]))
			return refuse(error, error_size, name,
				      "\"%s\" does not begin with DEVICE=SIZE, as 0=16G does",
				      text);
		if (ordinal >= GPC_WISH_DEVICES)
			return refuse(error, error_size, name, "%lu is no device", ordinal);
		amount = strtoull(end + 1, &end, 10);
		shift = toupper((unsigned char)*end) == 'G'   ? 30
			: toupper((unsigned char)*end) == 'M' ? 20
							      : 0;
		end += shift != 0;
		end += shift != 0 && toupper((unsigned char)*end) == 'B';
		if (!shift || (*end && *end != ',') || amount == 0 || amount > UINT64_MAX >> shift)
			return refuse(error, error_size, name,
				      "\"%s\": a size is a number with M or G behind it", text);
		*(all ? &others : &wish->memory[ordinal]) = (uint64_t)amount << shift;
		if (!all && wish->memory_count <= (int)ordinal)
			wish->memory_count = (int)ordinal + 1;
		text = end + (*end == ',');
	}
	for (int i = 0; others && i < GPC_WISH_DEVICES; i++) {
		if (!wish->memory[i])
			wish->memory[i] = others;
		wish->memory_count = GPC_WISH_DEVICES;
	}
	return 0;
}

static int
read_isolation(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_ISOLATION";
	const char *text = value_of(name);

	wish->isolation = GPC_ISOLATION_ANY;
	if (text && strcmp(text, "shared") == 0)
		wish->isolation = GPC_ISOLATION_SHARED;
	else if (text && strcmp(text, "process") == 0)
		wish->isolation = GPC_ISOLATION_PROCESS;
	else if (text)
		return refuse(error, error_size, name, "neither shared nor process");
	return 0;
}

static int
read_compression(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_COMPRESSION";
	const char *text = value_of(name);

	if (!text || strcmp(text, "auto") == 0)
		wish->compression = GP_PACK_AUTO;
	else if (strcmp(text, "on") == 0)
		wish->compression = GP_PACK_ON;
	else if (strcmp(text, "off") == 0)
		wish->compression = GP_PACK_OFF;
	else
		return refuse(error, error_size, name, "none of auto, on, off");
	return 0;
}

static int
read_lanes(struct gpc_wish *wish, char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_LANES";
	const char *text = value_of(name);
	unsigned long lanes;
	char *end;

	if (!text)
		return 0;
	lanes = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || lanes < 1 || lanes > GP_LANES_MAX)
		return refuse(error, error_size, name, "no number from 1 to %d", GP_LANES_MAX);
	wish->lanes = (unsigned int)lanes;
	return 0;
}

/* Connections ask gpc_config_timeout_ms(). */
static int
check_timeout(char *error, size_t error_size)
{
	char text[256];
	unsigned int ms;
	bool given;
	int r = gp_timeout_parse(value_of(GP_TIMEOUT_NAME), value_of(GP_TIMEOUT_OLD_NAME), &ms,
				 &given, text, sizeof(text));

	if (r != 0)
		(void)snprintf(error, error_size, "%s", text);
	else if (*text)
		gpc_warn("%s", text);
	return r;
}

static int
check_shm(char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_SHM";
	const char *text = value_of(name);

	if (!text || strcmp(text, "0") == 0 || strcmp(text, "1") == 0)
		return 0;
	return refuse(error, error_size, name, "neither 0 nor 1");
}

static int
check_managed(char *error, size_t error_size)
{
	static const char name[] = "GPUPOOL_MANAGED";
	const char *text = value_of(name);

	if (!text || strcmp(text, "userfaultfd") == 0 || strcmp(text, "signal") == 0)
		return 0;
	return refuse(error, error_size, name, "neither userfaultfd nor signal");
}

void
gpc_config_check_log(void)
{
	const char *text = value_of("GPUPOOL_LOG");
	char why[256];

	if (gpc_log_check(text, why, sizeof(why)) != 0)
		gpc_warn("GPUPOOL_LOG=%s: %s; it is left out", text, why);
}

int
gpc_config_wish(struct gpc_wish *wish, char *error, size_t error_size)
{
	int r;

	*wish = (struct gpc_wish){ .tenant = value_of("GPUPOOL_TENANT") };
	r = read_percentage(wish, error, error_size);
	if (r == 0)
		r = read_priority(wish, error, error_size);
	if (r == 0)
		r = read_memory(wish, error, error_size);
	if (r == 0)
		r = read_isolation(wish, error, error_size);
	if (r == 0)
		r = read_lanes(wish, error, error_size);
	if (r == 0)
		r = read_compression(wish, error, error_size);
	if (r == 0)
		r = check_timeout(error, error_size);
	if (r == 0)
		r = check_shm(error, error_size);
	if (r == 0)
		r = check_managed(error, error_size);
	return r;
}

bool
gpc_config_shm(void)
{
	const char *text = value_of("GPUPOOL_SHM");

	return !text || strcmp(text, "0") != 0;
}

unsigned int
gpc_config_timeout_ms(void)
{
	return gp_timeout_ms(value_of(GP_TIMEOUT_NAME), value_of(GP_TIMEOUT_OLD_NAME));
}
