/* SPDX-License-Identifier: Apache-2.0 */
/* Test descriptors of the generated codecs: for each argument and reply struct, functions that fill
 * it with random values, compare, encode and decode it (codec_gen.c), and the random values. */
#ifndef GP_TEST_CODEC_H
#define GP_TEST_CODEC_H

#include "protocol/dec.h"
#include "protocol/enc.h"

struct rng {
	uint64_t state;
	uint8_t *pool; /* storage of `bytes` fields */
	size_t pool_used, pool_size;
};

uint64_t rng_next(struct rng *rng);
size_t rng_size(struct rng *rng);
struct gp_bytes rng_bytes(struct rng *rng, size_t size, bool string);
bool same_bytes(struct gp_bytes a, struct gp_bytes b);

struct codec {
	const char *name;
	size_t struct_size;
	size_t field_count;
	void (*fill)(struct rng *rng, void *value);
	bool (*equal)(const void *a, const void *b);
	size_t (*size)(const void *value);
	void (*encode)(struct gp_enc *enc, const void *value);
	void (*decode)(struct gp_dec *dec, void *value);
};

extern const struct codec codecs[];
extern const size_t codec_count;

#endif /* GP_TEST_CODEC_H */
