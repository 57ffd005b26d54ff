/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/url.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEVICE_MAX 1023

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Syntax after the scheme. */
enum form {
	FORM_AUTHORITY, /* host[:port] */
	FORM_PATH,      /* absolute path, without port or device */
};

struct scheme {
	const char *name;
	enum form form;
};

static const struct scheme schemes[] = {
	{ "tls", FORM_AUTHORITY },
	{ "tcp", FORM_AUTHORITY },
	{ "unix", FORM_PATH },
	{ "rdma", FORM_AUTHORITY },
	{ GP_URL_RDMA_OR_TCP, FORM_AUTHORITY },
	/* Internal: error messages do not list it. */
	{ "shm", FORM_PATH },
};

/* The text being parsed and the buffer for the error. */
struct parser {
	const char *text;
	char *error;
	size_t error_size;
};

static int GP_PRINTF(2, 3) parser_fail(const struct parser *p, const char *what, ...)
{
	va_list args;
	int used;

	used = snprintf(p->error, p->error_size, "\"%.*s\": ", GP_URL_TEXT_MAX, p->text);
	if (used < 0 || (size_t)used >= p->error_size)
		return GP_E_INVALID;
	va_start(args, what);
	vsnprintf(p->error + used, p->error_size - (size_t)used, what, args);
	va_end(args);
	return GP_E_INVALID;
}

static const struct scheme *
scheme_find(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
		if (strlen(schemes[i].name) == length && memcmp(schemes[i].name, name, length) == 0)
			return &schemes[i];
	return NULL;
}

static int
parser_fail_scheme(const struct parser *p, const char *name, size_t length)
{
	char known[64];
	size_t used = 0;

	for (size_t i = 0; i + 1 < ARRAY_COUNT(schemes) && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 schemes[i].name);
	return parser_fail(p, "unknown scheme \"%.*s\" (known: %s)", (int)length, name, known);
}

static int
number_parse(const struct parser *p, const char *what, const char *text, size_t length, long max,
	     long *value_p)
{
	long value = 0;

	if (length == 0)
		return parser_fail(p, "the %s is missing", what);
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return parser_fail(p, "the %s \"%.*s\" is not a number", what, (int)length,
					   text);
		value = value * 10 + (text[i] - '0');
		if (value > max)
			return parser_fail(p, "the %s %.*s is above %ld", what, (int)length, text,
					   max);
	}
	*value_p = value;
	return 0;
}

static int
scheme_parse(const struct parser *p, const char **rest_p, const struct scheme **scheme_p)
{
	const char *name = GP_URL_DEFAULT_SCHEME;
	size_t length = strlen(GP_URL_DEFAULT_SCHEME);
	const char *slashes = strstr(p->text, "://");

	if (slashes) {
		name = p->text;
		length = (size_t)(slashes - p->text);
		*rest_p = slashes + 3;
	} else {
		*rest_p = p->text;
	}
	*scheme_p = scheme_find(name, length);
	return *scheme_p ? 0 : parser_fail_scheme(p, name, length);
}

static int
host_parse(const struct parser *p, const char *host, size_t length, const char *also,
	   struct gp_url *url)
{
	if (length == 0)
		return parser_fail(p, "the host is missing");
	if (length >= sizeof(url->host))
		return parser_fail(p, "the host is longer than %zu characters",
				   sizeof(url->host) - 1);
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(also, host[i]))
			return parser_fail(p, "character '%c' in the host", host[i]);
	memcpy(url->host, host, length);
	url->host[length] = 0;
	return 0;
}

/* A comma is not allowed, because a list in REMOTE_GPU is split at its commas. */
static int
path_parse(const struct parser *p, const char *text, struct gp_url *url)
{
	size_t length = strlen(text);

	if (text[0] != '/' || text[1] == 0)
		return parser_fail(p, "no absolute path (unix:///run/gpupool/gpupool.sock)");
	if (length >= GP_URL_PATH_MAX)
		return parser_fail(p, "the path is longer than %d characters", GP_URL_PATH_MAX - 1);
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]) || text[i] == ',')
			return parser_fail(p, "character '%c' in the path", text[i]);
	memcpy(url->host, text, length + 1);
	return 0;
}

/* Parses host[:port] of `length` characters. */
static int
authority_parse(const struct parser *p, const char *text, size_t length, struct gp_url *url)
{
	const char *end = text + length;
	const char *colon = memchr(text, ':', length);
	long port;
	int r;

	url->port = GP_URL_DEFAULT_PORT;
	if (length && text[0] == '[') {
		const char *bracket = memchr(text, ']', length);

		if (!bracket)
			return parser_fail(p, "the ']' after the address is missing");
		if (bracket + 1 < end && bracket[1] != ':')
			return parser_fail(p, "the text after ']' is neither a port nor a device");
		colon = bracket + 1 < end ? bracket + 1 : NULL;
		r = host_parse(p, text + 1, (size_t)(bracket - text - 1), ":.%-_", url);
	} else {
		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			return parser_fail(p, "an IPv6 address needs brackets: [address]:port");
		r = host_parse(p, text, (size_t)((colon ? colon : end) - text), ".-_*", url);
	}
	if (r || !colon)
		return r;
	r = number_parse(p, "port", colon + 1, (size_t)(end - colon - 1), UINT16_MAX, &port);
	if (r)
		return r;
	url->port = (uint16_t)port;
	return 0;
}

int
gp_url_parse(const char *text, struct gp_url *url, char *error, size_t error_size)
{
	const struct parser p = { .text = text, .error = error, .error_size = error_size };
	struct gp_url parsed = { .device = GP_URL_ANY_DEVICE };
	const struct scheme *scheme;
	const char *rest, *slash;
	size_t length;
	long device;
	int r;

	r = scheme_parse(&p, &rest, &scheme);
	if (r)
		return r;
	snprintf(parsed.scheme, sizeof(parsed.scheme), "%s", scheme->name);

	if (scheme->form != FORM_PATH && strstr(rest, "://"))
		return parser_fail(&p, "there are two schemes");
	slash = scheme->form == FORM_PATH ? NULL : strchr(rest, '/');
	length = slash ? (size_t)(slash - rest) : strlen(rest);
	if (scheme->form == FORM_PATH)
		r = path_parse(&p, rest, &parsed);
	else
		r = authority_parse(&p, rest, length, &parsed);
	if (r)
		return r;

	if (slash) {
		r = number_parse(&p, "device", slash + 1, strlen(slash + 1), DEVICE_MAX, &device);
		if (r)
			return r;
		parsed.device = (int)device;
	}
	*url = parsed;
	return 0;
}

int
gp_url_list_parse(const char *text, struct gp_url *urls, int max, int *count_p, char *error,
		  size_t error_size)
{
	const struct parser p = { .text = text, .error = error, .error_size = error_size };
	const char *item = text;
	int count = 0;

	for (;;) {
		size_t length = strcspn(item, ",");
		char one[GP_URL_TEXT_MAX];
		int r;

		if (length == 0)
			return parser_fail(&p, "item %d of the list is empty", count + 1);
		if (length >= sizeof(one))
			return parser_fail(&p, "item %d of the list is too long", count + 1);
		if (count == max)
			return parser_fail(&p, "more than %d items in the list", max);
		memcpy(one, item, length);
		one[length] = 0;
		r = gp_url_parse(one, &urls[count], error, error_size);
		if (r)
			return r;
		count++;
		if (!item[length])
			break;
		item += length + 1;
	}
	*count_p = count;
	return 0;
}

void
gp_url_format(const struct gp_url *url, char *text, size_t size)
{
	const struct scheme *scheme = scheme_find(url->scheme, strlen(url->scheme));
	enum form form = scheme ? scheme->form : FORM_AUTHORITY;
	bool brackets = form != FORM_PATH && strpbrk(url->host, ":%") != NULL;
	char port[8] = "", device[16] = "";

	if (form == FORM_AUTHORITY)
		snprintf(port, sizeof(port), ":%u", url->port);
	if (url->device != GP_URL_ANY_DEVICE && form != FORM_PATH)
		snprintf(device, sizeof(device), "/%d", url->device);
	snprintf(text, size, "%s://%s%s%s%s%s", url->scheme, brackets ? "[" : "", url->host,
		 brackets ? "]" : "", port, device);
}
