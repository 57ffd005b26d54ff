/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoder of a record of the call stream (one encoded call), field by field, into memory of the
 * caller.
 *
 * Fields are little-endian and aligned to their size. Byte ranges are a u32 length, padding to 8,
 * the bytes, and padding to 8. The generated gp_args_*_size() returns the memory that a record
 * needs, so exceeding it is a programming error: it sets a sticky flag (`bad`), and nothing more is
 * written.
 *
 * Ownership: the caller's memory; the encoder allocates nothing. Byte ranges are copied.
 * Threads: one thread at a time per encoder.
 */
#ifndef GP_ENC_H
#define GP_ENC_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed range of bytes. data may be NULL if size is 0. */
struct gp_bytes {
	const void *data;
	size_t size;
};

/* State of an encoder; initialized by gp_enc_init(). */
struct gp_enc {
	uint8_t *start;
	uint8_t *cur;
	uint8_t *end;
	/* a write did not fit */
	bool bad;
};

/* Starts a record in `size` bytes of memory, which is aligned to 8. */
void gp_enc_init(struct gp_enc *enc, void *memory, size_t size);
/* Append a field, after the padding that its alignment needs. */
void gp_enc_u32(struct gp_enc *enc, uint32_t value);
void gp_enc_u64(struct gp_enc *enc, uint64_t value);
void gp_enc_f32(struct gp_enc *enc, float value);
void gp_enc_bytes(struct gp_enc *enc, struct gp_bytes bytes);
/*
 * Reserves `size` bytes at a multiple of 8, to be filled with the gp_put_*() functions below. Used
 * for the leading fields of a record, whose offsets the generator knows. Returns NULL with the flag
 * set if the bytes do not fit.
 */
uint8_t *gp_enc_room(struct gp_enc *enc, size_t size);

/* Store a little-endian number at an address that need not be aligned. */
static inline void
gp_put_u32(uint8_t *at, uint32_t value)
{
	uint32_t wire = htole32(value);

	memcpy(at, &wire, sizeof(wire));
}

static inline void
gp_put_u64(uint8_t *at, uint64_t value)
{
	uint64_t wire = htole64(value);

	memcpy(at, &wire, sizeof(wire));
}

static inline void
gp_put_f32(uint8_t *at, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	gp_put_u32(at, bits);
}

/* Writes zeros up to the next multiple of 8, where every record ends. */
void gp_enc_pad(struct gp_enc *enc);
/* Returns the number of bytes written so far; undefined if the flag is set. */
size_t gp_enc_size(const struct gp_enc *enc);

/* Upper bound of the bytes that gp_enc_bytes() writes for a range of this size, with all
 * padding. */
#define GP_ENC_BYTES_SIZE(size) (16 + (((size) + 7) & ~(size_t)7))

#endif /* GP_ENC_H */
