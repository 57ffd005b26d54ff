/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_run_bitmap.h"

#include <string.h>

/* Returns the byte with the word's bit; a word's number is address / 4. NULL: outside of the range,
 * or no bitmap. */
static uint8_t *
bitmap_get_byte(const struct gp_changes_range *range, uint64_t word)
{
	uint64_t first = range->address / 4, last = (range->address + range->size - 1) / 4;

	if (!range->run_bitmap || word - first > last - first)
		return NULL;
	return range->run_bitmap + (word / 8 - first / 8);
}

static bool
bitmap_test(const struct gp_changes_range *range, uint64_t word)
{
	const uint8_t *byte = bitmap_get_byte(range, word);

	return byte && *byte >> word % 8 & 1;
}

static void
bitmap_set(const struct gp_changes_range *range, uint64_t word, bool mark)
{
	uint8_t *byte = bitmap_get_byte(range, word);

	if (byte)
		*byte = (uint8_t)((*byte & ~(1u << word % 8)) | (unsigned int)mark << word % 8);
}

static void
bitmap_set_range(const struct gp_changes_range *range, uint64_t first, uint64_t last)
{
	for (; first <= last && first % 8; first++)
		bitmap_set(range, first, true);
	if (range->run_bitmap && last - first + 1 >= 8 && first <= last) {
		memset(bitmap_get_byte(range, first), 0xff, (last - first + 1) / 8);
		first += (last - first + 1) / 8 * 8;
	}
	for (; first <= last; first++)
		bitmap_set(range, first, true);
}

bool
gp_run_bitmap_is_fragment(const struct gp_changes_range *range, const struct gp_change *run)
{
	return bitmap_test(range, run->address / 4) ||
	       bitmap_test(range, (run->address + run->size - 1) / 4);
}

void
gp_run_bitmap_update(const struct gp_changes_range *range, const struct gp_change *run)
{
	uint64_t first = run->address / 4, last = (run->address + run->size - 1) / 4;

	if (run->size > GP_CHANGES_SHORT) {
		bitmap_set_range(range, first, last);
		bitmap_set(range, first - 1, true);
		bitmap_set(range, last + 1, true);
		return;
	}
	/* A word that changes again by itself is a flag. */
	for (; first <= last; first++)
		bitmap_set(range, first, false);
}
