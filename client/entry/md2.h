/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD2 hash and HMAC-MD2.
 *
 * Used only for the digest that the CUDA runtime requires of its driver, never for security;
 * OpenSSL 3 is commonly built without MD2.
 *
 * Ownership: all state is in the caller's structs; nothing needs to be freed.
 * Threads: any, one thread per struct at a time.
 * Errors: the functions cannot fail.
 * Source: RFC 1319 (MD2), RFC 2104 (HMAC).
 */
#ifndef GPC_MD2_H
#define GPC_MD2_H

#include <stddef.h>
#include <stdint.h>

#define GPC_MD2_LEN 16 /* bytes in a block and in a digest */

/* State of a hash computation: call gpc_md2_init(), then gpc_md2_update() any number of times, then
 * gpc_md2_final(), which stores the digest. After that it can be initialized again. */
struct gpc_md2 {
	uint8_t state[GPC_MD2_LEN];
	uint8_t checksum[GPC_MD2_LEN];
	uint8_t pending[GPC_MD2_LEN];
	size_t pending_len;
};

void gpc_md2_init(struct gpc_md2 *md2);
void gpc_md2_update(struct gpc_md2 *md2, const void *data, size_t len);
void gpc_md2_final(struct gpc_md2 *md2, uint8_t digest[GPC_MD2_LEN]);

/* State of an HMAC computation, used like struct gpc_md2. */
struct gpc_md2_hmac {
	struct gpc_md2 inner;
	struct gpc_md2 outer;
};

/* Initializes the state with a key, which is copied. key_len: at most GPC_MD2_LEN. */
void gpc_md2_hmac_init(struct gpc_md2_hmac *hmac, const void *key, size_t key_len);
/* Adds data to the message. */
void gpc_md2_hmac_update(struct gpc_md2_hmac *hmac, const void *data, size_t len);
/* Stores the HMAC of the message. The state must then be initialized again before the next use. */
void gpc_md2_hmac_final(struct gpc_md2_hmac *hmac, uint8_t digest[GPC_MD2_LEN]);

#endif /* GPC_MD2_H */
