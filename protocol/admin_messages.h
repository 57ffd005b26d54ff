/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin socket's messages (admin.proto) as bytes, and where the socket is.  No state, any
 * thread.
 */
#ifndef GP_ADMIN_H
#define GP_ADMIN_H

#include "admin.pb-c.h"

#include <stddef.h>
#include <stdint.h>

#define GP_ADMIN_HEADER_SIZE 4
/* Of the packed message, without its length. */
#define GP_ADMIN_REQUEST_MAX ((size_t)64 << 10)
#define GP_ADMIN_REPLY_MAX ((size_t)64 << 20)

/* The length that is written in front of a message. */
void gp_admin_put_size(uint8_t header[GP_ADMIN_HEADER_SIZE], size_t size);
size_t gp_admin_get_size(const uint8_t header[GP_ADMIN_HEADER_SIZE]);

/* With their length; NULL: no memory.  The caller frees it. */
uint8_t *gp_admin_pack_request(const Gpupool__AdminRequest *request, size_t *size_p);
uint8_t *gp_admin_pack_reply(const Gpupool__AdminReply *reply, size_t *size_p);

/* Without their length; NULL if the bytes are no such message.  Freed by the functions below, which
 * accept NULL. */
Gpupool__AdminRequest *gp_admin_decode_request(const void *data, size_t size);
Gpupool__AdminReply *gp_admin_decode_reply(const void *data, size_t size);
void gp_admin_free_request(Gpupool__AdminRequest *request);
void gp_admin_free_reply(Gpupool__AdminReply *reply);

/* Where the socket is unless it is given: below /run for root, below XDG_RUNTIME_DIR for others. 0,
 * or -ENOENT: this user has no such folder. */
int gp_admin_get_default_path(char *path, size_t size);

/* "GPU-01234567-89ab-...", as NVIDIA's tools write it. */
#define GP_UUID_TEXT_SIZE 41
void gp_admin_format_uuid(const ProtobufCBinaryData *uuid, char text[GP_UUID_TEXT_SIZE]);

#endif /* GP_ADMIN_H */
