/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MILLION 1000000ul
#define BYTES_MAX (1ul << 60)
#define SM_MAX 65535

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool
gpd_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p)
{
	uint64_t value = 0;

	if (!is_digit(*text))
		return false;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	if (*text || value < min || value > max)
		return false;
	*value_p = value;
	return true;
}

/* An integer or decimal number, in millionths; *end_p: what follows it. */
static bool
decimal(const char *text, uint64_t *millionths_p, const char **end_p)
{
	uint64_t value = 0, unit = MILLION;

	if (!is_digit(*text))
		return false;
	for (; is_digit(*text); text++) {
		value = value * 10 + (uint64_t)(*text - '0');
		if (value >= UINT64_MAX / MILLION)
			return false;
	}
	value *= MILLION;
	if (*text == '.') {
		text++;
		if (!is_digit(*text))
			return false;
		for (; is_digit(*text); text++) {
			unit /= 10;
			if (unit == 0)
				return false;
			value += unit * (uint64_t)(*text - '0');
		}
	}
	*millionths_p = value;
	*end_p = text;
	return true;
}

static bool
bytes(const char *text, uint64_t *bytes_p)
{
	static const char units[] = "KMGT";
	uint64_t millionths;
	unsigned int shift = 0;

	if (!decimal(text, &millionths, &text))
		return false;
	if (*text) {
		const char *unit = strchr(units, toupper((unsigned char)*text));

		if (!unit)
			return false;
		shift = 10 * (unsigned int)(unit - units + 1);
		text++;
		if (*text == 'i')
			text++;
		if (*text == 'B' || *text == 'b')
			text++;
		if (*text)
			return false;
	}

	unsigned __int128 value = ((unsigned __int128)millionths << shift) / MILLION;

	if (value > BYTES_MAX)
		return false;
	*bytes_p = (uint64_t)value;
	return true;
}

/* "12.5%" as 1250; of at most two decimals, more than 0 and at most 100. */
static bool
share(const char *text, uint64_t *share_p)
{
	uint64_t millionths;

	if (!decimal(text, &millionths, &text) || strcmp(text, "%") != 0 ||
	    millionths % (MILLION / 100) || millionths == 0 || millionths > 100 * MILLION)
		return false;
	*share_p = millionths / (MILLION / 100);
	return true;
}

bool
gpd_value_percent(const char *text, uint64_t min, uint64_t max, uint64_t *value_p)
{
	char digits[8] = "";
	size_t length = strlen(text);

	if (length > 0 && text[length - 1] == '%')
		length--;
	if (length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	return gpd_value_number(digits, min, max, value_p);
}

const char *
gpd_value_memory(const char *text, struct gpd_config_amount *amount)
{
	struct gpd_config_amount value = { 0 };

	if (strcmp(text, "all") == 0)
		value.number = GPD_NO_LIMIT;
	else if (!share(text, &value.share)) {
		if (!bytes(text, &value.number))
			return "is no size (16G, 512M, 40% or all)";
		if (value.number < GPD_MEMORY_MIN)
			return "is less than 2M, the smallest size (16G, 512M, 40% or all)";
	}
	*amount = value;
	return NULL;
}

const char *
gpd_value_sm(const char *text, struct gpd_config_amount *amount)
{
	struct gpd_config_amount value = { 0 };

	if (strcmp(text, "all") != 0 && !share(text, &value.share) &&
	    !gpd_value_number(text, 1, SM_MAX, &value.number))
		return "is no part of the multiprocessors (25%, 33 or all)";
	*amount = value;
	return NULL;
}

const char *
gpd_value_bandwidth(const char *text, uint64_t *bytes_p)
{
	uint64_t value = GPD_NO_LIMIT;

	if (strcmp(text, "unlimited") != 0) {
		if (!bytes(text, &value))
			return "is no bandwidth (bytes per second: 1G, 500M or unlimited)";
		if (value < GPD_BANDWIDTH_MIN)
			return "is less than 64K, the smallest bandwidth (1G, 500M or unlimited)";
	}
	*bytes_p = value;
	return NULL;
}

const char *
gpd_value_name(const char *text, char name[GPD_TENANT_NAME_MAX])
{
	size_t length = strlen(text);

	for (const char *c = text; *c; c++)
		if (!is_digit(*c) && !((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z') &&
		    !strchr("._-", *c))
			length = 0;
	if (length == 0 || length >= GPD_TENANT_NAME_MAX)
		return "is no name (1 to 63 of A-Z a-z 0-9 . _ -)";
	memcpy(name, text, length + 1);
	return NULL;
}

const char *
gpd_value_user(const char *text, char name[GPD_TENANT_NAME_MAX])
{
	size_t length = strlen(text);

	/* "*" is a pattern to whoever writes it, and would match nobody. */
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("*,;=\"", *c))
			length = 0;
	if (length == 0 || length >= GPD_TENANT_NAME_MAX)
		return "is no user name (1 to 63 characters, no blanks; a list is alice,bob)";
	memcpy(name, text, length + 1);
	return NULL;
}

const char *
gpd_value_certificate(const char *text, char name[GPD_CONFIG_CERTIFICATE_MAX])
{
	size_t length = strlen(text);

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f || strchr("*,;=\"", *c))
			length = 0;
	if (length == 0 || length >= GPD_CONFIG_CERTIFICATE_MAX)
		return "is no name of a certificate (1 to 127 characters; a list is alice,bob)";
	memcpy(name, text, length + 1);
	return NULL;
}

const char *
gpd_value_uuid(const char *text, char uuid[41])
{
	static const char form[] = "gpu-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	char value[sizeof(form)];

	for (size_t i = 0; i < sizeof(form); i++) {
		char c = (char)tolower((unsigned char)text[i]);

		if (form[i] == 'x' ? !isxdigit((unsigned char)c) : c != form[i])
			return "is no device (0, *, or GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)";
		value[i] = c;
	}
	memcpy(uuid, value, sizeof(value));
	return NULL;
}

bool
gpd_value_address(const char *text, struct gpd_config_network *network)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct gpd_config_network value = { .bits = 32 };
	uint8_t v6[16];

	if (inet_pton(AF_INET, text, value.address) == 1) {
		*network = value;
		return true;
	}
	if (inet_pton(AF_INET6, text, v6) != 1)
		return false;
	if (memcmp(v6, mapped, sizeof(mapped)) == 0) {
		memcpy(value.address, v6 + sizeof(mapped), 4);
	} else {
		memcpy(value.address, v6, sizeof(v6));
		value.is_v6 = 1;
		value.bits = 128;
	}
	*network = value;
	return true;
}

static bool
is_zero_beyond(const struct gpd_config_network *network, unsigned int bits)
{
	for (unsigned int i = bits; i < (network->is_v6 ? 128u : 32u); i++)
		if (network->address[i / 8] & (0x80 >> i % 8))
			return false;
	return true;
}

const char *
gpd_value_network(const char *text, struct gpd_config_network *network)
{
	static const char form[] = "is no address (127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8)";
	struct gpd_config_network value;
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);

	if (length >= sizeof(address))
		return form;
	memcpy(address, text, length);
	address[length] = 0;
	if (!gpd_value_address(address, &value))
		return form;
	if (slash) {
		uint64_t bits;

		if (strchr(address, ':') && !value.is_v6)
			return "is an IPv4 address in the form of IPv6 (as IPv4: 10.0.0.0/8)";
		if (!gpd_value_number(slash + 1, 0, value.bits, &bits))
			return form;
		if (!is_zero_beyond(&value, (unsigned int)bits))
			return "has bits set that its length leaves out (10.0.0.0/8, not "
			       "10.0.0.1/8)";
		value.bits = (uint8_t)bits;
	}
	*network = value;
	return NULL;
}

const char *
gpd_value_metrics(const char *text, uint16_t port_min, char *host, size_t host_size,
		  uint16_t *port_p)
{
	static const char form[] =
		"is no address to listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)";
	const char *colon = strrchr(text, ':');
	const char *begin = text, *end = colon;
	uint64_t port = 0;

	if (strcmp(text, "off") == 0) {
		host[0] = 0;
		*port_p = 0;
		return NULL;
	}
	if (!gpd_value_number(colon ? colon + 1 : text, port_min, 65535, &port))
		return form;
	if (!colon) {
		(void)snprintf(host, host_size, "127.0.0.1");
		*port_p = (uint16_t)port;
		return NULL;
	}
	if (*begin == '[' && end[-1] == ']') {
		begin++;
		end--;
	} else if (memchr(begin, ':', (size_t)(end - begin))) {
		return form;
	}
	if (end <= begin || (size_t)(end - begin) >= host_size)
		return form;
	for (const char *c = begin; c < end; c++)
		if ((unsigned char)*c <= ' ' || strchr("[]/", *c))
			return form;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = 0;
	*port_p = (uint16_t)port;
	return NULL;
}
