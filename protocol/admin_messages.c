/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/admin_messages.h"

#include "protocol/little_endian.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
gp_admin_put_size(uint8_t header[GP_ADMIN_HEADER_SIZE], size_t size)
{
	uint32_t wire = htole32((uint32_t)size);

	memcpy(header, &wire, sizeof(wire));
}

size_t
gp_admin_get_size(const uint8_t header[GP_ADMIN_HEADER_SIZE])
{
	return gp_read_le32(header);
}

static uint8_t *
message_pack(const ProtobufCMessage *message, size_t *size_p)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = malloc(GP_ADMIN_HEADER_SIZE + size);

	if (!bytes)
		return NULL;
	gp_admin_put_size(bytes, size);
	protobuf_c_message_pack(message, bytes + GP_ADMIN_HEADER_SIZE);
	*size_p = GP_ADMIN_HEADER_SIZE + size;
	return bytes;
}

uint8_t *
gp_admin_pack_request(const Gpupool__AdminRequest *request, size_t *size_p)
{
	return message_pack(&request->base, size_p);
}

uint8_t *
gp_admin_pack_reply(const Gpupool__AdminReply *reply, size_t *size_p)
{
	return message_pack(&reply->base, size_p);
}

Gpupool__AdminRequest *
gp_admin_decode_request(const void *data, size_t size)
{
	return gpupool__admin_request__unpack(NULL, size, data);
}

Gpupool__AdminReply *
gp_admin_decode_reply(const void *data, size_t size)
{
	return gpupool__admin_reply__unpack(NULL, size, data);
}

void
gp_admin_free_request(Gpupool__AdminRequest *request)
{
	if (request)
		gpupool__admin_request__free_unpacked(request, NULL);
}

void
gp_admin_free_reply(Gpupool__AdminReply *reply)
{
	if (reply)
		gpupool__admin_reply__free_unpacked(reply, NULL);
}

int
gp_admin_get_default_path(char *path, size_t size)
{
	const char *runtime = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
	int length;

	if (!runtime || runtime[0] != '/')
		return -ENOENT;
	length = snprintf(path, size, "%s/gpupool/admin.sock", runtime);
	return length >= 0 && (size_t)length < size ? 0 : -ENOENT;
}

void
gp_admin_format_uuid(const ProtobufCBinaryData *uuid, char text[GP_UUID_TEXT_SIZE])
{
	char *at = text + sprintf(text, "GPU-");

	for (size_t i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      i < uuid->len ? uuid->data[i] : 0);
}
