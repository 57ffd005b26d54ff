/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder of a record of the call stream (one encoded call), field by field; the counterpart of
 * enc.h.
 *
 * A read beyond the end sets a sticky flag and returns zeros, so generated code reads every field
 * and calls gp_dec_done() once before it uses any of them. Nonzero padding counts as an error.
 *
 * Ownership: the decoder and the byte ranges that it returns point into the record's memory, which
 * must outlive them.
 * Threads: one thread at a time per decoder.
 */
#ifndef GP_DEC_H
#define GP_DEC_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State of a decoder; initialized by gp_dec_init(). */
struct gp_dec {
	const uint8_t *start;
	const uint8_t *cur;
	const uint8_t *end;
	/* a read was beyond the end, or padding was not zero */
	bool bad;
};

/* Starts decoding a record of `size` bytes. data: aligned to 8, so that the returned byte ranges
 * are aligned, too. */
void gp_dec_init(struct gp_dec *dec, const void *data, size_t size);
/* Read the next field; 0 or an empty range after an error. */
uint32_t gp_dec_u32(struct gp_dec *dec);
uint64_t gp_dec_u64(struct gp_dec *dec);
float gp_dec_f32(struct gp_dec *dec);
struct gp_bytes gp_dec_bytes(struct gp_dec *dec);

/* Returns whether all reads so far were within the record and all padding was zero. */
bool gp_dec_ok(const struct gp_dec *dec);

/* Called after the last field. Returns whether gp_dec_ok() is true, and nothing remains but zero
 * padding up to a multiple of 8. */
bool gp_dec_done(struct gp_dec *dec);

#endif /* GP_DEC_H */
