/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/md2.h"

#include <assert.h>
#include <string.h>

#define ROUNDS 18

/* Substitution table of RFC 1319, derived from the digits of pi. */
static const uint8_t pi[256] = {
	41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167,
	5,   243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,
	253, 212, 224, 22,  103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158,
	222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,
	148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,  53,  62,
	204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,
	172, 86,  170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116,
	4,   241, 69,  157, 112, 89,  100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,
	27,  96,  37,  173, 174, 176, 185, 246, 28,  70,  97,  105, 52,  64,  126, 15,  85,  71,
	163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,  44,  83,  13,  110,
	133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
	171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109,
	233, 203, 213, 254, 59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119,
	114, 248, 235, 117, 75,  10,  49,  68,  80,  180, 143, 237, 31,  26,  219, 153, 141, 51,
	159, 17,  131, 20,
};

static void
md2_process_block(struct gpc_md2 *md2, const uint8_t block[GPC_MD2_LEN])
{
	uint8_t x[3 * GPC_MD2_LEN];
	uint8_t last = md2->checksum[GPC_MD2_LEN - 1];
	uint8_t t = 0;

	for (int i = 0; i < GPC_MD2_LEN; i++) {
		x[i] = md2->state[i];
		x[GPC_MD2_LEN + i] = block[i];
		x[2 * GPC_MD2_LEN + i] = block[i] ^ md2->state[i];
		last = md2->checksum[i] ^= pi[block[i] ^ last];
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < sizeof(x); i++)
			t = x[i] ^= pi[t];
		t = (uint8_t)(t + round);
	}
	memcpy(md2->state, x, GPC_MD2_LEN);
}

void
gpc_md2_init(struct gpc_md2 *md2)
{
	memset(md2, 0, sizeof(*md2));
}

void
gpc_md2_update(struct gpc_md2 *md2, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		md2->pending[md2->pending_len++] = bytes[i];
		if (md2->pending_len == GPC_MD2_LEN) {
			md2_process_block(md2, md2->pending);
			md2->pending_len = 0;
		}
	}
}

void
gpc_md2_final(struct gpc_md2 *md2, uint8_t digest[GPC_MD2_LEN])
{
	size_t padding = GPC_MD2_LEN - md2->pending_len;
	uint8_t checksum[GPC_MD2_LEN];

	memset(md2->pending + md2->pending_len, (int)padding, padding);
	md2_process_block(md2, md2->pending);
	memcpy(checksum, md2->checksum, GPC_MD2_LEN);
	md2_process_block(md2, checksum);
	memcpy(digest, md2->state, GPC_MD2_LEN);
}

static void
md2_init_keyed(struct gpc_md2 *md2, const uint8_t *key, size_t key_len, uint8_t pad)
{
	uint8_t block[GPC_MD2_LEN];

	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < key_len; i++)
		block[i] ^= key[i];
	gpc_md2_init(md2);
	gpc_md2_update(md2, block, sizeof(block));
}

void
gpc_md2_hmac_init(struct gpc_md2_hmac *hmac, const void *key, size_t key_len)
{
	assert(key_len <= GPC_MD2_LEN);
	md2_init_keyed(&hmac->inner, key, key_len, 0x36);
	md2_init_keyed(&hmac->outer, key, key_len, 0x5c);
}

void
gpc_md2_hmac_update(struct gpc_md2_hmac *hmac, const void *data, size_t len)
{
	gpc_md2_update(&hmac->inner, data, len);
}

void
gpc_md2_hmac_final(struct gpc_md2_hmac *hmac, uint8_t digest[GPC_MD2_LEN])
{
	uint8_t inner[GPC_MD2_LEN];

	gpc_md2_final(&hmac->inner, inner);
	gpc_md2_update(&hmac->outer, inner, sizeof(inner));
	gpc_md2_final(&hmac->outer, digest);
}
