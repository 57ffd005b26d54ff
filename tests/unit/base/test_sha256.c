/* SPDX-License-Identifier: Apache-2.0 */
/* Equal to OpenSSL's digests for each length around the block size, in any parts. */
#include "base/sha256.h"
#include "tests/test.h"

#include <openssl/sha.h>
#include <stdint.h>

static uint8_t bytes[4 * GP_SHA256_BLOCK + 3];

static void
fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + i / 11);
}

static void
compare_all(void)
{
	uint8_t ours[GP_SHA256_SIZE], theirs[GP_SHA256_SIZE];

	for (size_t size = 0; size <= sizeof(bytes); size++) {
		(void)SHA256(bytes, size, theirs);
		gp_sha256(bytes, size, ours);
		assert_memory_equal(ours, theirs, sizeof(ours));
		for (size_t part = 1; part <= size; part = part * 2 + 1) {
			struct gp_sha256 state;

			gp_sha256_init(&state);
			for (size_t at = 0; at < size; at += part)
				gp_sha256_update(&state, bytes + at,
						 size - at < part ? size - at : part);
			gp_sha256_final(&state, ours);
			assert_memory_equal(ours, theirs, sizeof(ours));
		}
	}
}

UNIT_TEST(machine)
{
	compare_all();
}

UNIT_TEST(portable)
{
	gp_sha256_use_portable();
	compare_all();
}

/* FIPS 180-4's example, which no library has to be asked for. */
UNIT_TEST(known)
{
	static const uint8_t abc[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
				       0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
				       0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
				       0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
	uint8_t out[GP_SHA256_SIZE];

	gp_sha256("abc", 3, out);
	assert_memory_equal(out, abc, sizeof(abc));
}

int
main(void)
{
	fill();
	return unit_tests_run(NULL, NULL);
}
