/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool
gpd_value_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value_p)
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

const char *
gpd_value_parse_name(const char *text, char name[GPD_TENANT_NAME_MAX])
{
	size_t length = strlen(text);

	for (const char *c = text; *c; c++)
		if (!is_digit(*c) && !((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z') &&
		    !strchr("._-", *c))
			length = 0;
	if (length == 0 || length >= GPD_TENANT_NAME_MAX)
		return "is not a valid name (1 to 63 of A-Z a-z 0-9 . _ -)";
	memcpy(name, text, length + 1);
	return NULL;
}

const char *
gpd_value_parse_certificate(const char *text, char name[GPD_CONFIG_CERTIFICATE_MAX])
{
	size_t length = strlen(text);

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f || strchr("*,;=\"", *c))
			length = 0;
	if (length == 0 || length >= GPD_CONFIG_CERTIFICATE_MAX)
		return "is not a valid certificate name (1 to 127 characters; a list is alice,bob)";
	memcpy(name, text, length + 1);
	return NULL;
}

const char *
gpd_value_parse_uuid(const char *text, char uuid[41])
{
	static const char form[] = "gpu-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	char value[sizeof(form)];

	for (size_t i = 0; i < sizeof(form); i++) {
		char c = (char)tolower((unsigned char)text[i]);

		if (form[i] == 'x' ? !isxdigit((unsigned char)c) : c != form[i])
			return "is not a device (0, *, or "
			       "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)";
		value[i] = c;
	}
	memcpy(uuid, value, sizeof(value));
	return NULL;
}

bool
gpd_value_parse_address(const char *text, struct gpd_config_network *network)
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
