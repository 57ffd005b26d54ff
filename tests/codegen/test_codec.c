/* SPDX-License-Identifier: Apache-2.0 */
/* Properties that the codec of every call must have, over random values. */
#include "gp_calls.h"
#include "tests/codegen/codec.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 50
#define VALUE_MAX 1024
#define RECORD_MAX 8192

uint64_t
rng_next(struct rng *rng)
{
	rng->state ^= rng->state << 13;
	rng->state ^= rng->state >> 7;
	rng->state ^= rng->state << 17;
	return rng->state * UINT64_C(0x2545f4914f6cdd1d);
}

size_t
rng_size(struct rng *rng)
{
	return rng_next(rng) % 3 == 0 ? 0 : rng_next(rng) % 200;
}

struct gp_bytes
rng_bytes(struct rng *rng, size_t size, bool string)
{
	uint8_t *at = rng->pool + rng->pool_used;

	assert_true(rng->pool_used + size <= rng->pool_size);
	for (size_t i = 0; i < size; i++)
		at[i] = string ? (uint8_t)(1 + rng_next(rng) % 255) : (uint8_t)rng_next(rng);
	rng->pool_used += size;
	return (struct gp_bytes){ at, size };
}

bool
same_bytes(struct gp_bytes a, struct gp_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* One random value of a codec, and its encoding. */
struct sample {
	struct rng rng;
	uint8_t pool[4096];
	uint64_t value[VALUE_MAX / 8];
	uint64_t record[RECORD_MAX / 8];
	size_t size;
};

static void
encode_sample(struct sample *sample, const struct codec *codec, uint64_t seed)
{
	struct gp_enc enc;

	sample->rng = (struct rng){ .state = seed,
				    .pool = sample->pool,
				    .pool_size = sizeof(sample->pool) };
	assert_true(codec->struct_size <= sizeof(sample->value));
	memset(sample->value, 0, sizeof(sample->value));
	codec->fill(&sample->rng, sample->value);
	gp_enc_init(&enc, sample->record, codec->size(sample->value));
	assert_true(codec->size(sample->value) <= sizeof(sample->record));
	codec->encode(&enc, sample->value);
	assert_false(enc.bad);
	sample->size = gp_enc_size(&enc);
}

static bool
decodes(const struct codec *codec, const void *record, size_t size, void *value)
{
	struct gp_dec dec;

	gp_dec_init(&dec, record, size);
	codec->decode(&dec, value);
	return gp_dec_done(&dec);
}

static void
each(void (*property)(const struct codec *codec, struct sample *sample))
{
	struct sample *sample = malloc(sizeof(*sample));

	assert_non_null(sample);
	for (size_t i = 0; i < codec_count; i++) {
		for (uint64_t round = 1; round <= ROUNDS; round++) {
			encode_sample(sample, &codecs[i], round * 7919 + i);
			property(&codecs[i], sample);
		}
	}
	free(sample);
}

static void
comes_back(const struct codec *codec, struct sample *sample)
{
	uint64_t value[VALUE_MAX / 8];

	assert_true(sample->size % 8 == 0);
	if (!decodes(codec, sample->record, sample->size, value) ||
	    !codec->equal(sample->value, value))
		fail_msg("%s does not come back as it went", codec->name);
}

UNIT_TEST(what_goes_comes_back)
{
	each(comes_back);
}

static void
truncations_are_refused(const struct codec *codec, struct sample *sample)
{
	uint64_t value[VALUE_MAX / 8];

	for (size_t size = 0; size < sample->size; size++) {
		/* A copy of exactly that size: the sanitizer sees a read past it. */
		uint8_t *part = malloc(size + (size == 0));
		bool accepted;

		memcpy(part, sample->record, size);
		accepted = decodes(codec, part, size, value);
		free(part);
		/* Only padding may be missing, never a field. */
		if (accepted && !codec->equal(sample->value, value))
			fail_msg("%s accepts %zu of %zu bytes", codec->name, size, sample->size);
	}
}

UNIT_TEST(every_truncation_is_refused)
{
	each(truncations_are_refused);
}

static void
corruptions_are_survived(const struct codec *codec, struct sample *sample)
{
	uint64_t value[VALUE_MAX / 8];

	for (size_t word = 0; word < sample->size / 8; word++) {
		uint64_t before = sample->record[word];

		sample->record[word] ^= rng_next(&sample->rng);
		(void)decodes(codec, sample->record, sample->size, value);
		sample->record[word] = UINT64_MAX;
		(void)decodes(codec, sample->record, sample->size, value);
		sample->record[word] = before;
	}
}

UNIT_TEST(every_corruption_is_survived)
{
	each(corruptions_are_survived);
}

static void
something_more_is_refused(const struct codec *codec, struct sample *sample)
{
	uint64_t value[VALUE_MAX / 8];

	sample->record[sample->size / 8] = 1;
	assert_false(decodes(codec, sample->record, sample->size + 8, value));
}

UNIT_TEST(bytes_after_the_last_field_are_refused)
{
	each(something_more_is_refused);
}

static void
too_little_room_is_noticed(const struct codec *codec, struct sample *sample)
{
	struct gp_enc enc;

	if (sample->size == 0)
		return;
	gp_enc_init(&enc, sample->record, sample->size - 1);
	codec->encode(&enc, sample->value);
	assert_true(enc.bad);
}

UNIT_TEST(an_encoder_never_writes_past_its_room)
{
	each(too_little_room_is_noticed);
}

UNIT_TEST(every_number_finds_its_call)
{
	for (size_t i = 0; i < gp_call_count; i++)
		assert_ptr_equal(gp_call_find(gp_call_table[i].number), &gp_call_table[i]);
	assert_null(gp_call_find(0));
	assert_null(gp_call_find(0xfeff));
}

UNIT_TEST(the_bitmap_names_exactly_the_calls)
{
	uint8_t bitmap[GP_CALL_BITMAP_SIZE];
	size_t bits = 0;

	gp_call_bitmap(bitmap);
	for (size_t i = 0; i < sizeof(bitmap) * 8; i++) {
		bool set = bitmap[i / 8] >> i % 8 & 1;

		assert_true(set == (gp_call_find((uint16_t)i) != NULL));
		bits += set;
	}
	assert_int_equal(bits, gp_call_count);
}

UNIT_TEST(a_dump_names_the_call_and_its_fields)
{
	struct gp_args_gpMemoryMap args = { .address = 0x110000000000,
					    .size = 0x200000,
					    .device = -1 };
	uint64_t fields[8];
	struct gp_header header = { .call = GP_CALL_gpMemoryMap, .request = 7, .context = 3 };
	struct gp_enc enc;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_args_gpMemoryMap_encode(&enc, &args);
	gp_dump_record(file, &header, fields, gp_enc_size(&enc));
	gp_dump_record(file, &header, fields, 8);
	fclose(file);
	assert_string_equal(
		text, "gpMemoryMap #7 context 3 address=0x110000000000 size=0x200000 device=-1\n"
		      "gpMemoryMap #7 context 3 (malformed)\n");
	free(text);
}

UNIT_TEST_MAIN(NULL, NULL)
