/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder: reads one record, field by field.
 *
 * A read past the end sets a sticky flag and yields zeros, so generated code reads every field and
 * checks gp_dec_done() once, before acting on any of them.  Padding must be zero.  The decoder and
 * the bytes it hands out borrow the record's memory.
 */
#ifndef GP_DEC_H
#define GP_DEC_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_dec {
	const uint8_t *start;
	const uint8_t *cur;
	const uint8_t *end;
	bool bad;
};

void gp_dec_init(struct gp_dec *dec, const void *data, size_t size);
uint32_t gp_dec_u32(struct gp_dec *dec);
uint64_t gp_dec_u64(struct gp_dec *dec);
float gp_dec_f32(struct gp_dec *dec);
struct gp_bytes gp_dec_bytes(struct gp_dec *dec);

/* Whether every read so far was inside the record. */
bool gp_dec_ok(const struct gp_dec *dec);

/* Whether, besides, nothing but zero padding to 8 is left. */
bool gp_dec_done(struct gp_dec *dec);

#endif /* GP_DEC_H */
