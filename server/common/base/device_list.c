/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/device_list.h"

#include "protocol/admin_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(GPD_DEVICE_UUID_TEXT_SIZE == GP_UUID_TEXT_SIZE, "a UUID's text");

void
gpd_device_list_format_uuid(const struct gpd_device_list *list, int device,
			    char text[GPD_DEVICE_UUID_TEXT_SIZE])
{
	ProtobufCBinaryData uuid = { sizeof(list->uuids[device]), (uint8_t *)list->uuids[device] };

	gp_admin_format_uuid(&uuid, text);
}

void
gpd_device_list_format(const struct gpd_device_list *list, char text[GPD_DEVICE_LIST_TEXT_MAX])
{
	size_t used = (size_t)snprintf(text, GPD_DEVICE_LIST_TEXT_MAX, "%x:%x", list->used,
				       list->contexts);

	for (int i = 0; i < list->count; i++) {
		char uuid[GPD_DEVICE_UUID_TEXT_SIZE];

		gpd_device_list_format_uuid(list, i, uuid);
		used += (size_t)snprintf(text + used, GPD_DEVICE_LIST_TEXT_MAX - used, ",%s", uuid);
	}
}

/* Reads 16 bytes of "GPU-01234567-89ab-...". Returns the end of the text, or NULL. */
static const char *
uuid_parse(const char *text, uint8_t uuid[16])
{
	if (strncmp(text, "GPU-", 4) != 0)
		return NULL;
	text += 4;
	for (int i = 0; i < 16; i++) {
		unsigned int byte;
		int length = 0;

		text += *text == '-';
		if (sscanf(text, "%2x%n", &byte, &length) != 1 || length != 2)
			return NULL;
		uuid[i] = (uint8_t)byte;
		text += length;
	}
	return text;
}

/* Reads a hexadecimal number and moves *text_p past it. */
static bool
mask_parse(const char **text_p, uint32_t *mask_p)
{
	char *end;
	unsigned long mask = strtoul(*text_p, &end, 16);

	if (end == *text_p || mask > UINT32_MAX)
		return false;
	*mask_p = (uint32_t)mask;
	*text_p = end;
	return true;
}

bool
gpd_device_list_parse(const char *text, struct gpd_device_list *list)
{
	const char *at = text;

	*list = (struct gpd_device_list){ 0 };
	if (!mask_parse(&at, &list->used) || *at++ != ':' || !mask_parse(&at, &list->contexts))
		return false;
	while (at && *at == ',' && list->count < GPD_DEVICE_LIST_MAX) {
		at = uuid_parse(at + 1, list->uuids[list->count]);
		list->count++;
	}
	return at && !*at;
}

bool
gpd_device_list_has(const struct gpd_device_list *list, int device)
{
	return device >= 0 && device < GPD_DEVICE_LIST_MAX && (list->used >> device & 1) &&
	       (list->count == 0 || device < list->count);
}
