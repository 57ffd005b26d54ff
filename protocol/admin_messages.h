/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding of the messages of the admin socket, through which gpupoolctl queries the daemon
 * (admin.proto): a little-endian 4-byte length followed by the packed protobuf message. Also the
 * default path of the socket.
 *
 * Ownership: arguments are borrowed during the call; results are malloc'ed and the caller's.
 * Threads: any; no state.
 */
#ifndef GP_ADMIN_MESSAGES_H
#define GP_ADMIN_MESSAGES_H

#include "admin.pb-c.h"

#include <stddef.h>
#include <stdint.h>

/* Size of the length that precedes a message. */
#define GP_ADMIN_HEADER_SIZE 4
/* Maximum sizes of the packed message, without its length, in bytes. The end that sends or receives
 * a message checks them, not the functions below. */
#define GP_ADMIN_REQUEST_MAX ((size_t)64 << 10)
#define GP_ADMIN_REPLY_MAX ((size_t)64 << 20)

/* Writes the length that precedes each message. */
void gp_admin_put_size(uint8_t header[GP_ADMIN_HEADER_SIZE], size_t size);
/* Reads the length that precedes each message. It is not validated: the caller compares it with
 * GP_ADMIN_REQUEST_MAX or GP_ADMIN_REPLY_MAX. */
size_t gp_admin_get_size(const uint8_t header[GP_ADMIN_HEADER_SIZE]);

/* Returns the request, packed and preceded by its length, in malloc'ed memory of *size_p bytes,
 * which the caller frees with free(). NULL: out of memory. */
uint8_t *gp_admin_pack_request(const Gpupool__AdminRequest *request, size_t *size_p);
/* Packs a reply as gp_admin_pack_request() packs a request. */
uint8_t *gp_admin_pack_reply(const Gpupool__AdminReply *reply, size_t *size_p);

/* Decodes a packed request without its length. Returns NULL if the bytes are not a valid message or
 * memory is exhausted. The caller frees the result with gp_admin_free_request(). */
Gpupool__AdminRequest *gp_admin_decode_request(const void *data, size_t size);
/* Decodes a reply as gp_admin_decode_request(); freed with gp_admin_free_reply(). */
Gpupool__AdminReply *gp_admin_decode_reply(const void *data, size_t size);
/* Free a decoded message; accept NULL. */
void gp_admin_free_request(Gpupool__AdminRequest *request);
void gp_admin_free_reply(Gpupool__AdminReply *reply);

/* Stores the default path of the socket: gpupool/admin.sock below /run if the effective user is
 * root, otherwise below $XDG_RUNTIME_DIR. Returns 0, or -ENOENT if the variable is not set to an
 * absolute path or the result does not fit in `size` bytes. */
int gp_admin_get_default_path(char *path, size_t size);

/* Size of a UUID's text, including its NUL. */
#define GP_UUID_TEXT_SIZE 41
/* Formats a GPU's UUID as NVIDIA's tools do: "GPU-01234567-89ab-...". Bytes missing from 16 are
 * formatted as zeros, further bytes are ignored. */
void gp_admin_format_uuid(const ProtobufCBinaryData *uuid, char text[GP_UUID_TEXT_SIZE]);

#endif /* GP_ADMIN_MESSAGES_H */
