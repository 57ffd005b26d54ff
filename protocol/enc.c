/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/enc.h"

#include <endian.h>
#include <string.h>

void
gp_enc_init(struct gp_enc *enc, void *memory, size_t size)
{
	*enc = (struct gp_enc){ .start = memory, .cur = memory, .end = (uint8_t *)memory + size };
}

static void
enc_write(struct gp_enc *enc, const void *data, size_t size)
{
	if (enc->bad || size > (size_t)(enc->end - enc->cur)) {
		enc->bad = true;
		return;
	}
	if (size > 0)
		memcpy(enc->cur, data, size);
	enc->cur += size;
}

static void
enc_align(struct gp_enc *enc, size_t alignment)
{
	static const uint8_t zeros[8];
	size_t size = -(size_t)(enc->cur - enc->start) & (alignment - 1);

	/* The padding after a u32 has this size: a store instead of a call of memcpy(). */
	if (size == sizeof(uint32_t))
		enc_write(enc, zeros, sizeof(uint32_t));
	else if (size > 0)
		enc_write(enc, zeros, size);
}

uint8_t *
gp_enc_room(struct gp_enc *enc, size_t size)
{
	uint8_t *at;

	enc_align(enc, 8);
	at = enc->cur;
	if (enc->bad || size > (size_t)(enc->end - at)) {
		enc->bad = true;
		return NULL;
	}
	enc->cur = at + size;
	return at;
}

void
gp_enc_u32(struct gp_enc *enc, uint32_t value)
{
	uint32_t wire = htole32(value);

	enc_write(enc, &wire, sizeof(wire));
}

void
gp_enc_u64(struct gp_enc *enc, uint64_t value)
{
	uint64_t wire = htole64(value);

	enc_align(enc, 8);
	enc_write(enc, &wire, sizeof(wire));
}

void
gp_enc_f32(struct gp_enc *enc, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	gp_enc_u32(enc, bits);
}

void
gp_enc_bytes(struct gp_enc *enc, struct gp_bytes bytes)
{
	/* The bytes padded to 8. The length is written here, or 4 bytes further. */
	size_t size = (bytes.size + 7) & ~(size_t)7;
	size_t head = 8 - ((size_t)(enc->cur - enc->start) & 4);
	size_t left = (size_t)(enc->end - enc->cur);

	if (enc->bad || bytes.size > left || size + head > left) {
		enc->bad = true;
		return;
	}
	if (head == 8)
		gp_put_u32(enc->cur + 4, 0);
	gp_put_u32(enc->cur, (uint32_t)bytes.size);
	enc->cur += head;
	if (size == 0)
		return;
	gp_put_u64(enc->cur + size - 8, 0);
	memcpy(enc->cur, bytes.data, bytes.size);
	enc->cur += size;
}

void
gp_enc_pad(struct gp_enc *enc)
{
	enc_align(enc, 8);
}

size_t
gp_enc_size(const struct gp_enc *enc)
{
	return (size_t)(enc->cur - enc->start);
}
