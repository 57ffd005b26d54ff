/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_consistent_copy.h"

#include "protocol/host_diff_scan.h"
#include "protocol/host_merge.h"
#include "protocol/host_run_bitmap.h"

#include <stdlib.h>
#include <string.h>

/* Maximum scans of all ranges; small ranges are scanned more often because it is cheap. */
#define SCANS_MAX 4
#define SMALL_SCANS_MAX 16
#define SMALL ((uint64_t)64 << 10)
/* Runs that change too fast for scans of all ranges: up to MOVING_MAX bytes of them are sampled
 * separately, up to MOVING_SCANS times. */
#define MOVING_MAX 512
#define MOVING_SCANS 64
/* Number of failed samplings after which the reverse scan is used. */
#define RESTLESS_MAX 2
/* Buffers up to this size are retained. */
#define TRIMMED_MAX ((size_t)256 << 10)

static uint64_t
ranges_get_size(const struct gp_changes_range *ranges, size_t count)
{
	uint64_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += ranges[i].size;
	return size;
}

static bool
cursor_is_same_run(const struct gp_run_cursor *a, const struct gp_run_cursor *b)
{
	return a->run.size && b->run.size && a->range == b->range &&
	       a->run.address == b->run.address && a->run.size == b->run.size;
}

/* Whether the cursor's run is at or before the run of the other cursor. */
static bool
cursor_is_not_after(const struct gp_run_cursor *a, const struct gp_run_cursor *b)
{
	return a->run.size && (!b->run.size || a->range < b->range ||
			       (a->range == b->range && a->run.address <= b->run.address));
}

/* Runs of a scan whose content differs from the previous scan. */
struct moving_runs {
	struct {
		size_t range;
		uint64_t address;
		const uint8_t *memory;
		uint8_t *bytes; /* in the scan's buffer */
		uint32_t size;
	} runs[MOVING_MAX / 4];
	size_t count, size;
};

/* Whether a run was already moving before. Runs are visited in the order of the ranges. */
static bool
moving_contains(const struct moving_runs *before, size_t *at, const struct gp_run_cursor *place)
{
	uint64_t address = place->run.address, end = address + place->run.size;

	while (*at < before->count &&
	       (before->runs[*at].range < place->range ||
		(before->runs[*at].range == place->range &&
		 before->runs[*at].address + before->runs[*at].size <= address)))
		++*at;
	return *at < before->count && before->runs[*at].range == place->range &&
	       before->runs[*at].address < end;
}

static bool
moving_add(struct moving_runs *moving_runs, const struct gp_run_cursor *place)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	uint8_t *bytes = place->changes->bytes;
	size_t i = moving_runs->count;

	moving_runs->size += place->run.size;
	if (moving_runs->size > MOVING_MAX ||
	    i == sizeof(moving_runs->runs) / sizeof(moving_runs->runs[0]))
		return false;
	moving_runs->runs[i].range = place->range;
	moving_runs->runs[i].address = place->run.address;
	moving_runs->runs[i].memory =
		(const uint8_t *)range->copy + (place->run.address - range->address);
	moving_runs->runs[i].bytes = bytes + ((const uint8_t *)place->run.bytes - bytes);
	moving_runs->runs[i].size = place->run.size;
	moving_runs->count++;
	return true;
}

/* Finds the moving runs, including those that moved before. Returns false, with none stored, if
 * there are too many. */
static bool
moving_find(struct moving_runs *moving_runs, const struct gp_changes *now,
	    const struct gp_changes *earlier, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_run_cursor place = gp_run_cursor_first(now, ranges, count);
	struct gp_run_cursor old = gp_run_cursor_first(earlier, ranges, count);
	const struct moving_runs before = *moving_runs;
	size_t at = 0;

	moving_runs->count = moving_runs->size = 0;
	for (; place.run.size; gp_run_cursor_next(&place)) {
		while (cursor_is_not_after(&old, &place) && !cursor_is_same_run(&old, &place))
			gp_run_cursor_next(&old);
		if (cursor_is_same_run(&old, &place) &&
		    memcmp(old.run.bytes, place.run.bytes, place.run.size) == 0 &&
		    !moving_contains(&before, &at, &place))
			continue;
		if (!moving_add(moving_runs, &place)) {
			moving_runs->count = 0;
			return false;
		}
	}
	return true;
}

/* A single aligned word cannot be torn. */
static bool
moving_is_one_word(const struct moving_runs *moving_runs)
{
	return moving_runs->count == 1 &&
	       moving_runs->runs[0].address / 8 ==
		       (moving_runs->runs[0].address + moving_runs->size - 1) / 8 &&
	       moving_runs->size % 4 == 0;
}

/* Updates the scan with the content of the moving runs at a single moment. Returns false if no two
 * samples were equal. */
static bool
moving_sample(const struct moving_runs *moving_runs)
{
	uint8_t looks[2][MOVING_MAX + 8 * MOVING_MAX / 4] __attribute__((aligned(8))) = { 0 };
	size_t size = 0;

	for (int i = 0; i < MOVING_SCANS; i++) {
		uint8_t *look = looks[i % 2];

		size = 0;
		for (size_t j = 0; j < moving_runs->count; j++) {
			/* Same alignment as the source. */
			size += ((uintptr_t)moving_runs->runs[j].memory - size) % 8;
			gp_changes_load(look + size, moving_runs->runs[j].memory,
					moving_runs->runs[j].size);
			size += moving_runs->runs[j].size;
		}
		if (moving_is_one_word(moving_runs))
			break;
		if (i > 0 && memcmp(looks[0], looks[1], size) == 0)
			break;
		if (i + 1 == MOVING_SCANS)
			return false;
	}
	size = 0;
	for (size_t j = 0; j < moving_runs->count; j++) {
		size += ((uintptr_t)moving_runs->runs[j].memory - size) % 8;
		memcpy(moving_runs->runs[j].bytes, looks[0] + size, moving_runs->runs[j].size);
		size += moving_runs->runs[j].size;
	}
	return true;
}

static bool
moving_has_bytes(const struct moving_runs *moving_runs, const uint8_t *bytes)
{
	for (size_t i = 0; i < moving_runs->count; i++) {
		if (moving_runs->runs[i].bytes == bytes)
			return true;
	}
	return false;
}

/* Whether the scans before and after moving_sample() are equal, except for the moving runs. */
static bool
scans_are_equal(const struct gp_changes *held, const struct moving_runs *moving_runs,
		const struct gp_changes *later)
{
	struct gp_change a, b;
	size_t at_a = 0, at_b = 0;

	if (held->size != later->size)
		return false;
	while (gp_changes_next(held->bytes, held->size, &at_a, &a) > 0 &&
	       gp_changes_next(later->bytes, later->size, &at_b, &b) > 0) {
		if (a.address != b.address || a.size != b.size ||
		    (memcmp(a.bytes, b.bytes, a.size) != 0 &&
		     !moving_has_bytes(moving_runs, a.bytes)))
			return false;
	}
	return true;
}

/* Stages in the order in which the other end stores. */
enum store_stage {
	INSIDE,
	EDGES,
	RESTS,
	PAIRS,
	WORDS,
	STAGES
};

struct run_part {
	size_t at, size;
};

/* Returns the number of parts of a run that belong to the stage, and the parts. */
static int
run_get_parts(const struct gp_run_cursor *place, enum store_stage store_stage,
	      struct run_part parts[2])
{
	const struct gp_change *run = &place->run;
	size_t size = run->size, front = 8 - run->address % 8, back = (run->address + size) % 8;
	enum store_stage of = size > 4 ? PAIRS : WORDS;

	if (size <= GP_CHANGES_SHORT) {
		if (gp_run_bitmap_is_fragment(&place->ranges[place->range], run))
			of = RESTS;
		parts[0] = (struct run_part){ 0, size };
		return of == store_stage;
	}
	back = back ? back : 8;
	if (store_stage == INSIDE) {
		parts[0] = (struct run_part){ front, size - front - back };
		return size > front + back;
	}
	parts[0] = (struct run_part){ 0, front };
	parts[1] = (struct run_part){ size - back, back };
	return store_stage == EDGES ? 2 : 0;
}

/* Replaces a part by the content that an earlier scan has seen; where that scan found no change,
 * the content was the shadow's. */
static void
part_copy_earlier(struct gp_run_cursor *earlier, const struct gp_run_cursor *place,
		  const struct run_part *run_part)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	uint64_t address = place->run.address + run_part->at, end = address + run_part->size;
	uint8_t *bytes = place->changes->bytes +
			 ((const uint8_t *)place->run.bytes - place->changes->bytes) + run_part->at;

	memcpy(bytes, (const uint8_t *)range->shadow + (address - range->address), run_part->size);
	for (; earlier->run.size; gp_run_cursor_next(earlier)) {
		uint64_t from = earlier->run.address, to = from + earlier->run.size;

		if (earlier->range > place->range ||
		    (earlier->range == place->range && from >= end))
			return;
		if (earlier->range < place->range || to <= address)
			continue;
		from = from > address ? from : address;
		memcpy(bytes + (from - address),
		       (const uint8_t *)earlier->run.bytes + (from - earlier->run.address),
		       (to < end ? to : end) - from);
		if (to >= end)
			return;
	}
}

/* Removes short runs that now equal the shadow. */
static void
changes_drop_unchanged(struct gp_changes *changes, const struct gp_changes_range *ranges,
		       size_t count)
{
	struct gp_run_cursor place = gp_run_cursor_first(changes, ranges, count);
	size_t kept = 0;

	for (; place.run.size; gp_run_cursor_next(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];
		const uint8_t *shadow =
			(const uint8_t *)range->shadow + (place.run.address - range->address);
		size_t whole = gp_changes_get_run_size(place.run.size);

		if (place.run.size <= GP_CHANGES_SHORT &&
		    memcmp(shadow, place.run.bytes, place.run.size) == 0)
			continue;
		memmove(changes->bytes + kept, changes->bytes + place.at - whole, whole);
		kept += whole;
	}
	changes->size = kept;
}

/* A reverse scan for each stage, from the last stage to the first: nothing is read before the parts
 * that the other end stores after it, so no flag is newer than its data. Returns false if the
 * changes exceed the limit. */
static bool
stages_scan_reverse(struct gp_consistent_copy *consistent, const struct gp_changes_range *ranges,
		    size_t count)
{
	struct gp_changes *looks = consistent->scans, *all = &looks[INSIDE];

	for (int store_stage = STAGES; store_stage > 0; store_stage--) {
		if (!gp_diff_scan_reverse(&looks[store_stage - 1], &consistent->ordered, ranges,
					  count))
			return false;
	}
	for (int store_stage = EDGES; store_stage < STAGES; store_stage++) {
		struct gp_run_cursor place = gp_run_cursor_first(all, ranges, count);
		struct gp_run_cursor earlier =
			gp_run_cursor_first(&looks[store_stage], ranges, count);
		struct run_part parts[2];

		for (; place.run.size; gp_run_cursor_next(&place)) {
			int of_stage = run_get_parts(&place, (enum store_stage)store_stage, parts);

			for (int i = 0; i < of_stage; i++)
				part_copy_earlier(&earlier, &place, &parts[i]);
		}
	}
	changes_drop_unchanged(all, ranges, count);
	return true;
}

/* Both ends agree on these changes from now on. */
static void
shadow_update(const struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_run_cursor place = gp_run_cursor_first(changes, ranges, count);

	for (; place.run.size; gp_run_cursor_next(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];

		memcpy((uint8_t *)range->shadow + (place.run.address - range->address),
		       place.run.bytes, place.run.size);
		gp_run_bitmap_update(range, &place.run);
	}
}

static void
part_write(struct gp_consistent_copy *consistent, const struct gp_run_cursor *place,
	   const struct run_part *run_part)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	const uint8_t *bytes = (const uint8_t *)place->run.bytes + run_part->at;
	uint64_t address = place->run.address + run_part->at;

	if (consistent->merges)
		gp_merge_write(&consistent->ordered, address, bytes,
			       (const uint8_t *)range->shadow + (address - range->address),
			       run_part->size);
	else
		gp_changes_write(&consistent->ordered, address, bytes, run_part->size);
}

/* Returns false if out of memory. */
static bool
changes_order(struct gp_consistent_copy *consistent, const struct gp_changes *changes,
	      const struct gp_changes_range *ranges, size_t count)
{
	struct gp_changes *ordered = &consistent->ordered;

	ordered->size = 0;
	/* A run of 16 bytes and its header may become three runs of 8 bytes. */
	if (!gp_diff_scan_grow(ordered, changes->size * 3))
		return false;
	for (int store_stage = 0; store_stage < STAGES; store_stage++) {
		struct gp_run_cursor place = gp_run_cursor_first(changes, ranges, count);
		struct run_part parts[2];

		for (; place.run.size; gp_run_cursor_next(&place)) {
			int of_stage = run_get_parts(&place, (enum store_stage)store_stage, parts);

			for (int i = 0; i < of_stage; i++)
				part_write(consistent, &place, &parts[i]);
		}
	}
	return true;
}

/* Passes the future content of the 8 bytes at `at` to the filter, if all of them are in the
 * range. */
static bool
word_is_allowed(const struct gp_consistent_copy *consistent, const struct gp_changes_range *range,
		uint64_t at, const struct gp_change *run)
{
	uint8_t bytes[8];
	uint64_t value;

	if (at < range->address || range->size < 8 || at - range->address > range->size - 8)
		return true;
	if (at >= run->address && run->size >= 8 && at - run->address <= run->size - 8) {
		memcpy(&value, (const uint8_t *)run->bytes + (at - run->address), 8);
		return consistent->allow(consistent->arg, value);
	}
	memcpy(bytes, (const uint8_t *)range->shadow + (at - range->address), 8);
	for (size_t i = 0; i < 8; i++) {
		if (at + i - run->address < run->size)
			bytes[i] = ((const uint8_t *)run->bytes)[at + i - run->address];
	}
	memcpy(&value, bytes, 8);
	return consistent->allow(consistent->arg, value);
}

/* Calls the filter for all words, even after one was rejected. */
static bool
changes_are_allowed(const struct gp_consistent_copy *consistent, const struct gp_changes *changes,
		    const struct gp_changes_range *ranges, size_t count)
{
	bool may = true;

	if (!consistent->allow)
		return true;
	for (struct gp_run_cursor place = gp_run_cursor_first(changes, ranges, count);
	     place.run.size; gp_run_cursor_next(&place)) {
		uint64_t end = place.run.address + place.run.size;

		for (uint64_t at = place.run.address & ~(uint64_t)7; at < end; at += 8)
			may &= word_is_allowed(consistent, &ranges[place.range], at, &place.run);
	}
	return may;
}

/* Makes the changes the result of the copy; returns false if they are rejected or memory is
 * exhausted. */
static bool
changes_commit(struct gp_consistent_copy *consistent, const struct gp_changes *changes,
	       const struct gp_changes_range *ranges, size_t count)
{
	if (consistent->on_read)
		consistent->on_read(consistent->arg);
	if (!changes_are_allowed(consistent, changes, ranges, count))
		return false;
	if (!changes_order(consistent, changes, ranges, count))
		return false;
	shadow_update(changes, ranges, count);
	return true;
}

/* Scans all ranges until two scans are equal. Returns 1 with the result in looks[*last]; 0: the
 * memory changes all the time; -1: the changes exceed the limit. */
static int
ranges_scan_until_equal(struct gp_changes *looks, const struct gp_changes_range *ranges,
			size_t count, int *last)
{
	uint64_t all = ranges_get_size(ranges, count);
	int most = all <= SMALL ? SMALL_SCANS_MAX : SCANS_MAX, restless = 0;
	struct moving_runs moving_runs;

	moving_runs.count = 0;
	*last = 0;
	if (gp_diff_scan(&looks[0], ranges, count) < all)
		return -1;
	for (int i = 1; looks[*last].size; i++) {
		struct gp_changes *before = &looks[*last], *now = &looks[i % 2];

		if (gp_diff_scan(now, ranges, count) < all)
			return -1;
		if (scans_are_equal(before, &moving_runs, now))
			break;
		*last = i % 2;
		if (i + 1 == most)
			return 0;
		if (!moving_find(&moving_runs, now, before, ranges, count))
			continue;
		if (!moving_sample(&moving_runs)) {
			moving_runs.count = 0;
			if (++restless == RESTLESS_MAX)
				return 0;
		}
	}
	return 1;
}

static void
changes_drop_short(struct gp_changes *changes)
{
	struct gp_change run;
	size_t at = 0, kept = 0;

	while (gp_changes_next(changes->bytes, changes->size, &at, &run) > 0) {
		size_t whole = gp_changes_get_run_size(run.size);

		if (run.size <= GP_CHANGES_SHORT)
			continue;
		memmove(changes->bytes + kept, changes->bytes + at - whole, whole);
		kept += whole;
	}
	changes->size = kept;
}

static uint64_t
copy_build_part(struct gp_consistent_copy *consistent, const struct gp_changes_range *ranges,
		size_t count, enum gp_consistent_copy_part run_part)
{
	struct gp_changes *changes = &consistent->scans[0];
	uint64_t done = gp_diff_scan(changes, ranges, count);

	if (run_part == GP_CONSISTENT_COPY_LONG)
		changes_drop_short(changes);
	return changes_commit(consistent, changes, ranges, count) ? done : 0;
}

/* Returns 0 if the changes exceed the limit; the caller then copies parts. */
static uint64_t
copy_build_all(struct gp_consistent_copy *consistent, const struct gp_changes_range *ranges,
	       size_t count)
{
	int last, r = ranges_scan_until_equal(consistent->scans, ranges, count, &last);

	if (r < 0 || (r == 0 && !stages_scan_reverse(consistent, ranges, count)))
		return 0;
	if (!changes_commit(consistent, &consistent->scans[r ? last : INSIDE], ranges, count))
		return 0;
	return ranges_get_size(ranges, count);
}

uint64_t
gp_consistent_copy_build(struct gp_consistent_copy *consistent,
			 const struct gp_changes_range *ranges, size_t count,
			 enum gp_consistent_copy_part run_part)
{
	uint64_t done;

	consistent->ordered.size = 0;
	done = run_part == GP_CONSISTENT_COPY_ALL
		       ? copy_build_all(consistent, ranges, count)
		       : copy_build_part(consistent, ranges, count, run_part);
	/* A reverse scan uses this buffer, and may fail for lack of room. */
	if (done == 0)
		consistent->ordered.size = 0;
	return done;
}

static void
changes_free(struct gp_changes *changes)
{
	free(changes->bytes);
	*changes = (struct gp_changes){ 0 };
}

static void
copy_trim(struct gp_consistent_copy *consistent, size_t most)
{
	for (int i = 0; i < GP_CONSISTENT_COPY_SCANS; i++) {
		if (consistent->scans[i].capacity > most)
			changes_free(&consistent->scans[i]);
	}
	if (consistent->ordered.capacity > most)
		changes_free(&consistent->ordered);
}

void
gp_consistent_copy_trim(struct gp_consistent_copy *consistent)
{
	copy_trim(consistent, TRIMMED_MAX);
}

void
gp_consistent_copy_fini(struct gp_consistent_copy *consistent)
{
	copy_trim(consistent, 0);
}
