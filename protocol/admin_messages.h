/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of the admin socket's messages (admin.proto): a 4-byte length followed by the packed
 * protobuf message. Also the default path of the socket.
 *
 * Threads: any; no state.
 */
#ifndef GP_ADMIN_H
#define GP_ADMIN_H

#include "admin.pb-c.h"

#include <stddef.h>
#include <stdint.h>

#define GP_ADMIN_HEADER_SIZE 4
/* Limits of the packed message, without its length. */
#define GP_ADMIN_REQUEST_MAX ((size_t)64 << 10)
#define GP_ADMIN_REPLY_MAX ((size_t)64 << 20)

/* Writes and reads the length that precedes each message. */
void gp_admin_put_size(uint8_t header[GP_ADMIN_HEADER_SIZE], size_t size);
size_t gp_admin_get_size(const uint8_t header[GP_ADMIN_HEADER_SIZE]);

/* Returns the packed message with its length in front, malloc'ed; the caller frees it. NULL: out of
 * memory. */
uint8_t *gp_admin_pack_request(const Gpupool__AdminRequest *request, size_t *size_p);
uint8_t *gp_admin_pack_reply(const Gpupool__AdminReply *reply, size_t *size_p);

/* Decodes a packed message without its length. Returns NULL if the bytes are not a valid message.
 * The caller frees the result with the functions below, which accept NULL. */
Gpupool__AdminRequest *gp_admin_decode_request(const void *data, size_t size);
Gpupool__AdminReply *gp_admin_decode_reply(const void *data, size_t size);
void gp_admin_free_request(Gpupool__AdminRequest *request);
void gp_admin_free_reply(Gpupool__AdminReply *reply);

/* Stores the default path of the socket: below /run for root, below XDG_RUNTIME_DIR for other
 * users. Returns 0, or -ENOENT if the user has no such directory. */
int gp_admin_get_default_path(char *path, size_t size);

/* Formats a GPU's UUID as NVIDIA's tools do: "GPU-01234567-89ab-...". */
#define GP_UUID_TEXT_SIZE 41
void gp_admin_format_uuid(const ProtobufCBinaryData *uuid, char text[GP_UUID_TEXT_SIZE]);

#endif /* GP_ADMIN_H */
