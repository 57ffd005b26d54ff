/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_marks.h"

#include <string.h>

/* Words have the numbers address / 4.  NULL: it lies outside, or there are no marks. */
static uint8_t *
byte_of(const struct gp_changes_range *range, uint64_t word)
{
	uint64_t first = range->address / 4, last = (range->address + range->size - 1) / 4;

	if (!range->marks || word - first > last - first)
		return NULL;
	return range->marks + (word / 8 - first / 8);
}

static bool
is_marked(const struct gp_changes_range *range, uint64_t word)
{
	const uint8_t *byte = byte_of(range, word);

	return byte && *byte >> word % 8 & 1;
}

static void
set(const struct gp_changes_range *range, uint64_t word, bool mark)
{
	uint8_t *byte = byte_of(range, word);

	if (byte)
		*byte = (uint8_t)((*byte & ~(1u << word % 8)) | (unsigned int)mark << word % 8);
}

static void
set_all(const struct gp_changes_range *range, uint64_t first, uint64_t last)
{
	for (; first <= last && first % 8; first++)
		set(range, first, true);
	if (range->marks && last - first + 1 >= 8 && first <= last) {
		memset(byte_of(range, first), 0xff, (last - first + 1) / 8);
		first += (last - first + 1) / 8 * 8;
	}
	for (; first <= last; first++)
		set(range, first, true);
}

bool
gp_marks_are_of_rest(const struct gp_changes_range *range, const struct gp_change *run)
{
	return is_marked(range, run->address / 4) ||
	       is_marked(range, (run->address + run->size - 1) / 4);
}

void
gp_marks_note(const struct gp_changes_range *range, const struct gp_change *run)
{
	uint64_t first = run->address / 4, last = (run->address + run->size - 1) / 4;

	if (run->size > GP_CHANGES_SHORT) {
		set_all(range, first, last);
		set(range, first - 1, true);
		set(range, last + 1, true);
		return;
	}
	/* What changes by itself once more is a flag. */
	for (; first <= last; first++)
		set(range, first, false);
}
