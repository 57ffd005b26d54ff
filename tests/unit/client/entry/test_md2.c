/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/md2.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static void
hex(const uint8_t digest[GPC_MD2_LEN], char text[2 * GPC_MD2_LEN + 1])
{
	for (int i = 0; i < GPC_MD2_LEN; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void
expect_md2(const char *message, const char *expected)
{
	char text[2 * GPC_MD2_LEN + 1];
	uint8_t digest[GPC_MD2_LEN];
	struct gpc_md2 md2;

	gpc_md2_init(&md2);
	gpc_md2_update(&md2, message, strlen(message));
	gpc_md2_final(&md2, digest);
	hex(digest, text);
	assert_string_equal(text, expected);
}

UNIT_TEST(digests_are_those_of_rfc_1319)
{
	expect_md2("", "8350e5a3e24c153df2275c9f80692773");
	expect_md2("a", "32ec01ec4a6dac72c0ab96fb34c0b5d1");
	expect_md2("abc", "da853b0d3f88d99b30283a69e6ded6bb");
	expect_md2("message digest", "ab4f496bfb2a530b219ff33031fe06b0");
	expect_md2("abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b");
	expect_md2("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		   "da33def2a42df13975352846c30338cd");
	expect_md2(
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		"d5976f79d83d3a0dc9806c3c66f3efd8");
}

UNIT_TEST(digest_is_the_same_however_the_message_is_cut)
{
	uint8_t message[50], whole[GPC_MD2_LEN], cut[GPC_MD2_LEN];
	struct gpc_md2 md2;

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 7);
	gpc_md2_init(&md2);
	gpc_md2_update(&md2, message, sizeof(message));
	gpc_md2_final(&md2, whole);

	for (size_t at = 0; at <= sizeof(message); at++) {
		gpc_md2_init(&md2);
		gpc_md2_update(&md2, message, at);
		gpc_md2_update(&md2, message + at, sizeof(message) - at);
		gpc_md2_final(&md2, cut);
		assert_memory_equal(cut, whole, sizeof(whole));
	}
}

/* RFC 2104 written out: H(key ^ opad | H(key ^ ipad | message)). */
static void
hmac_by_hand(const uint8_t *key, size_t key_len, const char *message, uint8_t digest[GPC_MD2_LEN])
{
	uint8_t inner[2 * GPC_MD2_LEN + 64], outer[2 * GPC_MD2_LEN];
	size_t len = strlen(message);
	struct gpc_md2 md2;

	for (size_t i = 0; i < GPC_MD2_LEN; i++) {
		uint8_t byte = i < key_len ? key[i] : 0;

		inner[i] = byte ^ 0x36;
		outer[i] = byte ^ 0x5c;
	}
	memcpy(inner + GPC_MD2_LEN, message, len);
	gpc_md2_init(&md2);
	gpc_md2_update(&md2, inner, GPC_MD2_LEN + len);
	gpc_md2_final(&md2, outer + GPC_MD2_LEN);
	gpc_md2_init(&md2);
	gpc_md2_update(&md2, outer, sizeof(outer));
	gpc_md2_final(&md2, digest);
}

UNIT_TEST(hmac_is_that_of_rfc_2104)
{
	static const uint8_t key[GPC_MD2_LEN] = "0123456789abcdef";
	static const size_t key_lens[] = { 0, 1, 15, 16 };
	static const char *const messages[] = { "", "what do ya want for nothing?",
						"exactly 16 bytes" };
	uint8_t expected[GPC_MD2_LEN], digest[GPC_MD2_LEN];
	struct gpc_md2_hmac hmac;

	for (size_t k = 0; k < 4; k++) {
		for (size_t m = 0; m < 3; m++) {
			hmac_by_hand(key, key_lens[k], messages[m], expected);
			gpc_md2_hmac_init(&hmac, key, key_lens[k]);
			gpc_md2_hmac_update(&hmac, messages[m], strlen(messages[m]));
			gpc_md2_hmac_final(&hmac, digest);
			assert_memory_equal(digest, expected, sizeof(expected));
		}
	}
}

UNIT_TEST_MAIN(NULL, NULL)
