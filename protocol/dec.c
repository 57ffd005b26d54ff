/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/dec.h"

#include <endian.h>
#include <string.h>

void
gp_dec_init(struct gp_dec *dec, const void *data, size_t size)
{
	*dec = (struct gp_dec){ .start = data, .cur = data, .end = (const uint8_t *)data + size };
}

static void
dec_read(struct gp_dec *dec, void *out, size_t size)
{
	if (dec->bad || size > (size_t)(dec->end - dec->cur)) {
		dec->bad = true;
		memset(out, 0, size);
		return;
	}
	memcpy(out, dec->cur, size);
	dec->cur += size;
}

static void
dec_align(struct gp_dec *dec)
{
	while (!dec->bad && ((dec->cur - dec->start) & 7) != 0) {
		if (dec->cur == dec->end || *dec->cur != 0)
			dec->bad = true;
		else
			dec->cur++;
	}
}

uint32_t
gp_dec_u32(struct gp_dec *dec)
{
	uint32_t wire;

	dec_read(dec, &wire, sizeof(wire));
	return le32toh(wire);
}

uint64_t
gp_dec_u64(struct gp_dec *dec)
{
	uint64_t wire;

	dec_align(dec);
	dec_read(dec, &wire, sizeof(wire));
	return le64toh(wire);
}

float
gp_dec_f32(struct gp_dec *dec)
{
	uint32_t bits = gp_dec_u32(dec);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

struct gp_bytes
gp_dec_bytes(struct gp_dec *dec)
{
	struct gp_bytes bytes = { .size = gp_dec_u32(dec) };

	dec_align(dec);
	if (dec->bad || bytes.size > (size_t)(dec->end - dec->cur)) {
		dec->bad = true;
		return (struct gp_bytes){ 0 };
	}
	bytes.data = dec->cur;
	dec->cur += bytes.size;
	dec_align(dec);
	return bytes;
}

bool
gp_dec_ok(const struct gp_dec *dec)
{
	return !dec->bad;
}

bool
gp_dec_done(struct gp_dec *dec)
{
	dec_align(dec);
	return !dec->bad && dec->cur == dec->end;
}
