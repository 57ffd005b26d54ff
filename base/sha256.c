/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/* FIPS 180-4, 4.2.2 */
static const uint32_t constants[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

typedef void blocks_fn(uint32_t words[8], const uint8_t *bytes, size_t count);

static uint32_t
rotate_right(uint32_t word, unsigned int by)
{
	return word >> by | word << (32 - by);
}

static void
schedule_expand(uint32_t w[64], const uint8_t *bytes)
{
	memcpy(w, bytes, GP_SHA256_BLOCK);
	for (int i = 0; i < 16; i++)
		w[i] = be32toh(w[i]);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
		       (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
	}
}

static void
blocks_hash_portable(uint32_t words[8], const uint8_t *bytes, size_t count)
{
	uint32_t w[64], s[8];

	for (; count > 0; count--, bytes += GP_SHA256_BLOCK) {
		schedule_expand(w, bytes);
		memcpy(s, words, sizeof(s));
		for (int i = 0; i < 64; i++) {
			uint32_t first = s[7] +
					 (rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^
					  rotate_right(s[4], 25)) +
					 ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
			uint32_t second = (rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^
					   rotate_right(s[0], 22)) +
					  ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

			memmove(s + 1, s, sizeof(s) - sizeof(s[0]));
			s[4] += first;
			s[0] = first + second;
		}
		for (int i = 0; i < 8; i++)
			words[i] += s[i];
	}
}

#if defined(__x86_64__)

#define TARGET_SHA __attribute__((target("sha,ssse3,sse4.1")))

/* The SHA instructions expect the state words as a, b, e, f and c, d, g, h. */
TARGET_SHA static void
blocks_hash_native(uint32_t words[8], const uint8_t *bytes, size_t count)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(words + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

	for (; count > 0; count--, bytes += GP_SHA256_BLOCK) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i w[4];

#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i sum, *now = &w[i % 4];

			if (i < 4)
				*now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes + i),
							swap);
			else
				*now = _mm_sha256msg2_epu32(
					_mm_add_epi32(
						_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
						_mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4)),
					w[(i + 3) % 4]);
			sum = _mm_add_epi32(
				*now,
				_mm_load_si128((const __m128i *)(constants + (ptrdiff_t)4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)words, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(words + 4), _mm_alignr_epi8(high, low, 8));
}

static blocks_fn *
blocks_fn_select(void)
{
	unsigned int a, b = 0, c = 0, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_SHA) ||
	    !__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1))
		return blocks_hash_portable;
	return blocks_hash_native;
}

#elif defined(__aarch64__)

#ifdef __clang__
#define TARGET_SHA __attribute__((target("sha2")))
#else
#define TARGET_SHA __attribute__((target("+crypto")))
#endif

TARGET_SHA static void
blocks_hash_native(uint32_t words[8], const uint8_t *bytes, size_t count)
{
	uint32x4_t abcd = vld1q_u32(words), efgh = vld1q_u32(words + 4);

	for (; count > 0; count--, bytes += GP_SHA256_BLOCK) {
		const uint32x4_t abcd_before = abcd, efgh_before = efgh;
		uint32x4_t w[4];

#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			uint32x4_t sum, before = abcd, *now = &w[i % 4];

			if (i < 4)
				*now = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * i)));
			else
				*now = vsha256su1q_u32(vsha256su0q_u32(*now, w[(i + 1) % 4]),
						       w[(i + 2) % 4], w[(i + 3) % 4]);
			sum = vaddq_u32(*now, vld1q_u32(constants + (ptrdiff_t)4 * i));
			abcd = vsha256hq_u32(abcd, efgh, sum);
			efgh = vsha256h2q_u32(efgh, before, sum);
		}
		abcd = vaddq_u32(abcd, abcd_before);
		efgh = vaddq_u32(efgh, efgh_before);
	}
	vst1q_u32(words, abcd);
	vst1q_u32(words + 4, efgh);
}

static blocks_fn *
blocks_fn_select(void)
{
	return getauxval(AT_HWCAP) & HWCAP_SHA2 ? blocks_hash_native : blocks_hash_portable;
}

#else

static blocks_fn *
blocks_fn_select(void)
{
	return blocks_hash_portable;
}

#endif

static blocks_fn *blocks_hash;

static void
blocks_hash_init(void)
{
	blocks_hash = blocks_fn_select();
}

static pthread_once_t blocks_hash_once = PTHREAD_ONCE_INIT;

void
gp_sha256_use_portable(void)
{
	(void)pthread_once(&blocks_hash_once, blocks_hash_init);
	blocks_hash = blocks_hash_portable;
}

void
gp_sha256_init(struct gp_sha256 *state)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	(void)pthread_once(&blocks_hash_once, blocks_hash_init);
	memcpy(state->words, first, sizeof(first));
	state->size = 0;
}

void
gp_sha256_update(struct gp_sha256 *state, const void *bytes, size_t size)
{
	size_t held = state->size % GP_SHA256_BLOCK;
	size_t part = GP_SHA256_BLOCK - held;
	const uint8_t *from = bytes;

	if (size == 0)
		return;
	state->size += size;
	if (held > 0) {
		part = size < part ? size : part;
		memcpy(state->block + held, from, part);
		from += part;
		size -= part;
		if (held + part < GP_SHA256_BLOCK)
			return;
		blocks_hash(state->words, state->block, 1);
	}
	blocks_hash(state->words, from, size / GP_SHA256_BLOCK);
	memcpy(state->block, from + size / GP_SHA256_BLOCK * GP_SHA256_BLOCK,
	       size % GP_SHA256_BLOCK);
}

void
gp_sha256_final(struct gp_sha256 *state, uint8_t out[GP_SHA256_SIZE])
{
	static const uint8_t padding[GP_SHA256_BLOCK] = { 0x80 };
	uint64_t bits = htobe64(state->size * 8);

	gp_sha256_update(state, padding,
			 1 + (2 * GP_SHA256_BLOCK - 9 - state->size % GP_SHA256_BLOCK) %
					 GP_SHA256_BLOCK);
	gp_sha256_update(state, &bits, sizeof(bits));
	for (int i = 0; i < 8; i++)
		state->words[i] = htobe32(state->words[i]);
	memcpy(out, state->words, GP_SHA256_SIZE);
	explicit_bzero(state, sizeof(*state));
}

void
gp_sha256(const void *bytes, size_t size, uint8_t out[GP_SHA256_SIZE])
{
	struct gp_sha256 state;

	gp_sha256_init(&state);
	gp_sha256_update(&state, bytes, size);
	gp_sha256_final(&state, out);
}
