/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_diff_scan.h"

#include "protocol/enc.h"
#include "protocol/little_endian.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that are loaded and compared at once. */
#define STEP_SIZE ((size_t)1024)

bool
gp_diff_scan_grow(struct gp_changes *changes, size_t size)
{
	size_t capacity = changes->capacity ? changes->capacity : 4096;
	uint8_t *bytes;

	if (changes->capacity - changes->size >= size)
		return true;
	while (capacity - changes->size < size)
		capacity *= 2;
	bytes = realloc(changes->bytes, capacity);
	if (!bytes)
		return false;
	changes->bytes = bytes;
	changes->capacity = capacity;
	return true;
}

/* State of a scan through the ranges. */
struct diff_scan {
	struct gp_changes *changes;
	size_t last;  /* offset of the range's last run; SIZE_MAX: none */
	uint64_t end; /* end address of that run */
};

/* Appends a run; merges it with the last one if it is adjacent. */
static bool
run_add(struct diff_scan *diff_scan, uint64_t address, const uint8_t *bytes, size_t size)
{
	struct gp_changes *changes = diff_scan->changes;
	size_t old, whole;
	uint8_t *run;

	if (changes->size + gp_changes_get_run_size(size) > GP_DIFF_SCAN_MAX ||
	    !gp_diff_scan_grow(changes, gp_changes_get_run_size(size)))
		return false;
	if (diff_scan->last == SIZE_MAX || diff_scan->end != address) {
		diff_scan->last = changes->size;
		diff_scan->end = address + size;
		gp_changes_write(changes, address, bytes, size);
		return true;
	}
	run = changes->bytes + diff_scan->last;
	old = (size_t)(address - gp_read_le64(run));
	whole = gp_changes_get_run_size(old + size);
	memcpy(run + GP_CHANGES_HEAD + old, bytes, size);
	gp_put_u32(run + 8, (uint32_t)(old + size));
	memset(run + GP_CHANGES_HEAD + old + size, 0, whole - GP_CHANGES_HEAD - old - size);
	changes->size = diff_scan->last + whole;
	diff_scan->end += size;
	return true;
}

/* A word of 4 bytes, or a byte where no aligned word fits. */
static size_t
word_get_size(uint64_t address, size_t left)
{
	return address % 4 == 0 && left >= 4 ? 4 : 1;
}

static bool
word_differs(const uint8_t *a, const uint8_t *b, size_t size)
{
	return size == 4 ? memcmp(a, b, 4) != 0 : *a != *b;
}

/* Returns the number of bytes that follow in which both words of each 8 aligned bytes differ, or in
 * which neither does. */
static size_t
words_count_alike(uint64_t address, const uint8_t *now, const uint8_t *shadow, size_t size,
		  bool differ)
{
	size_t at = 0;
	uint64_t a, b;

	if (address % 8)
		return 0;
	for (; size - at >= 8; at += 8) {
		memcpy(&a, now + at, 8);
		memcpy(&b, shadow + at, 8);
		a ^= b;
		if (differ ? (uint32_t)a == 0 || a >> 32 == 0 : a != 0)
			break;
	}
	return at;
}

/* Appends the runs of a step, whose content is in `now`. Returns false if there was no room for all
 * of them. */
static bool
step_find_runs(struct diff_scan *diff_scan, uint64_t address, const uint8_t *now,
	       const uint8_t *shadow, size_t size)
{
	size_t at = 0;

	while (at < size) {
		size_t word, begin;

		at += words_count_alike(address + at, now + at, shadow + at, size - at, false);
		word = word_get_size(address + at, size - at);
		if (at == size || !word_differs(now + at, shadow + at, word)) {
			at += at < size ? word : 0;
			continue;
		}
		begin = at;
		while (at < size) {
			at += words_count_alike(address + at, now + at, shadow + at, size - at,
						true);
			word = word_get_size(address + at, size - at);
			if (at == size || !word_differs(now + at, shadow + at, word))
				break;
			at += word;
		}
		if (!run_add(diff_scan, address + begin, now + begin, at - begin))
			return false;
	}
	return true;
}

/* The word that ends at this address, with the same word boundaries as word_get_size(). */
static size_t
word_get_size_before(uint64_t end, size_t left)
{
	return end % 4 == 0 && left >= 4 ? 4 : 1;
}

/* Runs of a reverse scan store the size of the previous run in the header field that is zero in
 * other runs. */
static bool
run_add_reverse(struct diff_scan *diff_scan, uint64_t address, const uint8_t *bytes, size_t size)
{
	struct gp_changes *changes = diff_scan->changes;
	size_t at = changes->size, whole = gp_changes_get_run_size(size);

	if (at + whole > GP_DIFF_SCAN_MAX || !gp_diff_scan_grow(changes, whole))
		return false;
	gp_changes_write(changes, address, bytes, size);
	gp_put_u32(changes->bytes + at + 12, (uint32_t)(at - diff_scan->last));
	diff_scan->last = at;
	return true;
}

/* Like step_find_runs(), in descending order. */
static bool
step_find_runs_reverse(struct diff_scan *diff_scan, uint64_t address, const uint8_t *now,
		       const uint8_t *shadow, size_t size)
{
	size_t at = size;

	while (at > 0) {
		size_t word = word_get_size_before(address + at, at), end = at;

		at -= word;
		if (!word_differs(now + at, shadow + at, word))
			continue;
		while (at > 0) {
			word = word_get_size_before(address + at, at);
			if (!word_differs(now + at - word, shadow + at - word, word))
				break;
			at -= word;
		}
		if (!run_add_reverse(diff_scan, address + at, now + at, end - at))
			return false;
	}
	return true;
}

/* Returns false if there was no room for all changes. */
static bool
step_scan(struct diff_scan *diff_scan, const struct gp_changes_range *range, size_t at, size_t size,
	  bool back)
{
	uint8_t memory[STEP_SIZE + 8] __attribute__((aligned(8)));
	const uint8_t *shadow = (const uint8_t *)range->shadow + at;
	/* Same alignment as the source. */
	uint8_t *now = memory + (range->address + at) % 8;

	/* The most frequent case. */
	if (gp_changes_compare_equal((const uint8_t *)range->copy + at, shadow, size))
		return true;
	if (!back) {
		gp_changes_load(now, (const uint8_t *)range->copy + at, size);
		return step_find_runs(diff_scan, range->address + at, now, shadow, size);
	}
	gp_changes_load_reverse(now, (const uint8_t *)range->copy + at, size);
	return step_find_runs_reverse(diff_scan, range->address + at, now, shadow, size);
}

uint64_t
gp_diff_scan(struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	uint64_t done = 0;

	changes->size = 0;
	for (size_t i = 0; i < count; i++) {
		const struct gp_changes_range *range = &ranges[i];
		struct diff_scan diff_scan = { .changes = changes, .last = SIZE_MAX };
		size_t step;

		for (size_t at = 0; at < range->size; at += step, done += step) {
			/* Ends at a multiple of the step size, so that most steps consist of whole
			 * words. */
			step = STEP_SIZE - (range->address + at) % STEP_SIZE;
			if (step > range->size - at)
				step = range->size - at;
			if (!step_scan(&diff_scan, range, at, step, false))
				return done;
		}
	}
	return done;
}

static bool
range_scan_reverse(struct diff_scan *diff_scan, const struct gp_changes_range *range)
{
	for (size_t end = range->size, step; end > 0; end -= step) {
		step = (range->address + end) % STEP_SIZE;
		step = step ? step : STEP_SIZE;
		if (step > end)
			step = end;
		if (!step_scan(diff_scan, range, end - step, step, true))
			return false;
	}
	return true;
}

/* Appends the runs of a reverse scan in ascending order, beginning with the last one found. */
static bool
runs_reverse(struct gp_changes *changes, const struct diff_scan *back,
	     const struct gp_changes_range *ranges)
{
	struct diff_scan diff_scan = { .changes = changes, .last = SIZE_MAX };
	size_t at = back->last, left = back->changes->size;

	changes->size = 0;
	for (; left > 0; left = at, at -= gp_read_le32(back->changes->bytes + at + 12)) {
		const uint8_t *run = back->changes->bytes + at;
		uint64_t address = gp_read_le64(run);

		for (; address - ranges->address >= ranges->size; ranges++)
			diff_scan.last = SIZE_MAX;
		if (!run_add(&diff_scan, address, run + GP_CHANGES_HEAD, gp_read_le32(run + 8)))
			return false;
	}
	return true;
}

bool
gp_diff_scan_reverse(struct gp_changes *changes, struct gp_changes *spare,
		     const struct gp_changes_range *ranges, size_t count)
{
	struct diff_scan diff_scan = { .changes = spare };

	spare->size = 0;
	for (size_t i = count; i > 0; i--) {
		if (!range_scan_reverse(&diff_scan, &ranges[i - 1]))
			return false;
	}
	return runs_reverse(changes, &diff_scan, ranges);
}

void
gp_run_cursor_next(struct gp_run_cursor *place)
{
	if (gp_changes_next(place->changes->bytes, place->changes->size, &place->at, &place->run) <=
	    0) {
		place->run.size = 0;
		return;
	}
	while (place->range < place->count &&
	       place->run.address - place->ranges[place->range].address >=
		       place->ranges[place->range].size)
		place->range++;
}

struct gp_run_cursor
gp_run_cursor_first(const struct gp_changes *changes, const struct gp_changes_range *ranges,
		    size_t count)
{
	struct gp_run_cursor place = { .changes = changes, .ranges = ranges, .count = count };

	gp_run_cursor_next(&place);
	return place;
}
