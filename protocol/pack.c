/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/pack.h"

#include "base/clock.h"

/* Needed for the margin of in-place decompression. */
#define LZ4_STATIC_LINKING_ONLY
#include <lz4.h>

#define MIB ((uint64_t)1 << 20)
/* A lane faster than 250 MB/s is limited by processors, not by the link. */
#define LINK_SLOW_NS ((uint64_t)4 << 20)
/* The compressed size must be below this many eighths. */
#define WORTH_EIGHTHS 7
/* Chunks to skip after compression did not pay off; doubled each time up to the maximum. */
#define PAUSE_FIRST 2
#define PAUSE_MAX 64
/* Samples that detect other data during a pause; negligible compared with a chunk. */
#define SAMPLES 3
#define SAMPLE_SIZE 1024

static uint64_t
moving_average(uint64_t before, uint64_t now)
{
	return before == 0 ? now : before - before / 4 + now / 4;
}

/* Decides by the measured rates of the link and of the compression, and by the recent compression
 * ratio. */
static bool
pack_is_worthwhile(const struct gp_pack *pack)
{
	if (pack->mode == GP_PACK_ON)
		return true;
	if (pack->link_ns < LINK_SLOW_NS)
		return false;
	return pack->share == 0 || pack->pack_ns + pack->link_ns * pack->share / 1024 <
					   pack->link_ns * WORTH_EIGHTHS / 8;
}

static void
pack_start_pause(struct gp_pack *pack)
{
	pack->pause = pack->next_pause ? pack->next_pause : PAUSE_FIRST;
	pack->next_pause = pack->pause < PAUSE_MAX ? pack->pause * 2 : PAUSE_MAX;
	/* Later data may differ. */
	pack->share = 0;
}

/* Whether every sample compresses; the samples are spread over the whole chunk. */
static bool
samples_are_compressible(const uint8_t *bytes, size_t size)
{
	const size_t worth = SAMPLE_SIZE / 8 * WORTH_EIGHTHS;
	char packed[SAMPLE_SIZE];

	for (size_t i = 0; i < SAMPLES; i++) {
		const uint8_t *sample = bytes + (size - SAMPLE_SIZE) / (SAMPLES - 1) * i;

		if (LZ4_compress_default((const char *)sample, packed, SAMPLE_SIZE, (int)worth) <=
		    0)
			return false;
	}
	return true;
}

bool
gp_pack_should_try(struct gp_pack *pack, const void *bytes, size_t size)
{
	if (pack->mode == GP_PACK_OFF || size < GP_PACK_MIN || !pack_is_worthwhile(pack))
		return false;
	if (pack->pause == 0)
		return true;
	pack->pause--;
	if (pack->misled || !samples_are_compressible(bytes, size))
		return false;
	pack->pause = 0;
	pack->misled = true;
	return true;
}

size_t
gp_pack_try(struct gp_pack *pack, const void *from, size_t size, void *to)
{
	uint64_t begun = gp_now_ns();
	int packed = LZ4_compress_default(from, to, (int)size, (int)(size / 8 * WORTH_EIGHTHS));

	if (packed <= 0) {
		pack_start_pause(pack);
		return 0;
	}
	pack->pack_ns = moving_average(pack->pack_ns, (gp_now_ns() - begun) * MIB / size);
	pack->share = (unsigned int)moving_average(pack->share, 1 + (uint64_t)packed * 1024 / size);
	if (pack_is_worthwhile(pack)) {
		pack->next_pause = 0;
		pack->misled = false;
	} else {
		pack_start_pause(pack);
	}
	return (size_t)packed;
}

void
gp_pack_note_sent(struct gp_pack *pack, size_t bytes, uint64_t took_ns)
{
	if (bytes >= GP_PACK_MIN)
		pack->link_ns = moving_average(pack->link_ns, took_ns * MIB / bytes);
}

int
gp_unpack(const void *from, size_t packed, void *to, size_t size)
{
	return LZ4_decompress_safe(from, to, (int)packed, (int)size) == (int)size ? 0 : -1;
}

void *
gp_unpack_get_source(void *memory, size_t packed, size_t size)
{
	return (uint8_t *)memory + size + GP_PACK_SLACK - packed;
}

int
gp_unpack_in_place(void *memory, size_t packed, size_t size)
{
	_Static_assert(LZ4_DECOMPRESS_INPLACE_MARGIN(1 << 20) <= (int)GP_PACK_SLACK, "for a chunk");
	return gp_unpack(gp_unpack_get_source(memory, packed, size), packed, memory, size);
}
