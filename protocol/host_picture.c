/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_picture.h"

#include "protocol/host_look.h"
#include "protocol/host_marks.h"
#include "protocol/host_merge.h"

#include <stdlib.h>
#include <string.h>

/* How often everything is looked at: what is small costs little. */
#define LOOKS_MAX 4
#define SMALL_LOOKS_MAX 16
#define SMALL ((uint64_t)64 << 10)
/* Runs that move too fast for a look at everything: so many bytes of them are looked at alone, and
 * so often. */
#define MOVING_MAX 512
#define MOVING_LOOKS 64
/* Who never holds still that long is not waited for. */
#define RESTLESS_MAX 2
/* What is kept of the memory for pictures. */
#define KEPT_MAX ((size_t)256 << 10)

static uint64_t
size_of(const struct gp_changes_range *ranges, size_t count)
{
	uint64_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += ranges[i].size;
	return size;
}

static bool
is_same_run(const struct gp_place *a, const struct gp_place *b)
{
	return a->run.size && b->run.size && a->range == b->range &&
	       a->run.address == b->run.address && a->run.size == b->run.size;
}

/* The next run of the place is, or lies in front of, that of the other one. */
static bool
is_not_behind(const struct gp_place *a, const struct gp_place *b)
{
	return a->run.size && (!b->run.size || a->range < b->range ||
			       (a->range == b->range && a->run.address <= b->run.address));
}

/* Runs of one look that an earlier one did not see like that. */
struct moving {
	struct {
		size_t range;
		uint64_t address;
		const uint8_t *memory;
		uint8_t *bytes; /* of the look */
		uint32_t size;
	} runs[MOVING_MAX / 4];
	size_t count, size;
};

/* Runs are in the order of the ranges. */
static bool
has_moved(const struct moving *before, size_t *at, const struct gp_place *place)
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
add_moving(struct moving *moving, const struct gp_place *place)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	uint8_t *bytes = place->changes->bytes;
	size_t i = moving->count;

	moving->size += place->run.size;
	if (moving->size > MOVING_MAX || i == sizeof(moving->runs) / sizeof(moving->runs[0]))
		return false;
	moving->runs[i].range = place->range;
	moving->runs[i].address = place->run.address;
	moving->runs[i].memory =
		(const uint8_t *)range->copy + (place->run.address - range->address);
	moving->runs[i].bytes = bytes + ((const uint8_t *)place->run.bytes - bytes);
	moving->runs[i].size = place->run.size;
	moving->count++;
	return true;
}

/* With those that moved before.  false: they are too many, and none is kept. */
static bool
find_moving(struct moving *moving, const struct gp_changes *now, const struct gp_changes *earlier,
	    const struct gp_changes_range *ranges, size_t count)
{
	struct gp_place place = gp_place_first(now, ranges, count);
	struct gp_place old = gp_place_first(earlier, ranges, count);
	const struct moving before = *moving;
	size_t at = 0;

	moving->count = moving->size = 0;
	for (; place.run.size; gp_place_next(&place)) {
		while (is_not_behind(&old, &place) && !is_same_run(&old, &place))
			gp_place_next(&old);
		if (is_same_run(&old, &place) &&
		    memcmp(old.run.bytes, place.run.bytes, place.run.size) == 0 &&
		    !has_moved(&before, &at, &place))
			continue;
		if (!add_moving(moving, &place)) {
			moving->count = 0;
			return false;
		}
	}
	return true;
}

/* It cannot be torn. */
static bool
is_one_word(const struct moving *moving)
{
	return moving->count == 1 &&
	       moving->runs[0].address / 8 == (moving->runs[0].address + moving->size - 1) / 8 &&
	       moving->size % 4 == 0;
}

/* Puts into the look what these runs were at one moment.  false: nothing was alike. */
static bool
hold_still(const struct moving *moving)
{
	uint8_t looks[2][MOVING_MAX + 8 * MOVING_MAX / 4] __attribute__((aligned(8))) = { 0 };
	size_t size = 0;

	for (int i = 0; i < MOVING_LOOKS; i++) {
		uint8_t *look = looks[i % 2];

		size = 0;
		for (size_t j = 0; j < moving->count; j++) {
			/* As aligned as what it is read from. */
			size += ((uintptr_t)moving->runs[j].memory - size) % 8;
			gp_changes_load(look + size, moving->runs[j].memory, moving->runs[j].size);
			size += moving->runs[j].size;
		}
		if (is_one_word(moving))
			break;
		if (i > 0 && memcmp(looks[0], looks[1], size) == 0)
			break;
		if (i + 1 == MOVING_LOOKS)
			return false;
	}
	size = 0;
	for (size_t j = 0; j < moving->count; j++) {
		size += ((uintptr_t)moving->runs[j].memory - size) % 8;
		memcpy(moving->runs[j].bytes, looks[0] + size, moving->runs[j].size);
		size += moving->runs[j].size;
	}
	return true;
}

static bool
is_moving(const struct moving *moving, const uint8_t *bytes)
{
	for (size_t i = 0; i < moving->count; i++) {
		if (moving->runs[i].bytes == bytes)
			return true;
	}
	return false;
}

/* Whether the looks before and behind hold_still() are alike, but for what moved. */
static bool
is_alike(const struct gp_changes *held, const struct moving *moving, const struct gp_changes *later)
{
	struct gp_change a, b;
	size_t at_a = 0, at_b = 0;

	if (held->size != later->size)
		return false;
	while (gp_changes_next(held->bytes, held->size, &at_a, &a) > 0 &&
	       gp_changes_next(later->bytes, later->size, &at_b, &b) > 0) {
		if (a.address != b.address || a.size != b.size ||
		    (memcmp(a.bytes, b.bytes, a.size) != 0 && !is_moving(moving, a.bytes)))
			return false;
	}
	return true;
}

/* The order in which the other end stores. */
enum stage {
	INSIDE,
	EDGES,
	RESTS,
	PAIRS,
	WORDS,
	STAGES
};

struct part {
	size_t at, size;
};

/* Which of a run's bytes are of the stage: how many parts. */
static int
parts_of(const struct gp_place *place, enum stage stage, struct part parts[2])
{
	const struct gp_change *run = &place->run;
	size_t size = run->size, front = 8 - run->address % 8, back = (run->address + size) % 8;
	enum stage of = size > 4 ? PAIRS : WORDS;

	if (size <= GP_CHANGES_SHORT) {
		if (gp_marks_are_of_rest(&place->ranges[place->range], run))
			of = RESTS;
		parts[0] = (struct part){ 0, size };
		return of == stage;
	}
	back = back ? back : 8;
	if (stage == INSIDE) {
		parts[0] = (struct part){ front, size - front - back };
		return size > front + back;
	}
	parts[0] = (struct part){ 0, front };
	parts[1] = (struct part){ size - back, back };
	return stage == EDGES ? 2 : 0;
}

/* What an earlier look has seen there, or not: it was in the shadow then. */
static void
take_earlier(struct gp_place *earlier, const struct gp_place *place, const struct part *part)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	uint64_t address = place->run.address + part->at, end = address + part->size;
	uint8_t *bytes = place->changes->bytes +
			 ((const uint8_t *)place->run.bytes - place->changes->bytes) + part->at;

	memcpy(bytes, (const uint8_t *)range->shadow + (address - range->address), part->size);
	for (; earlier->run.size; gp_place_next(earlier)) {
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

/* Short runs that are as they were. */
static void
drop_unchanged(struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_place place = gp_place_first(changes, ranges, count);
	size_t kept = 0;

	for (; place.run.size; gp_place_next(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];
		const uint8_t *shadow =
			(const uint8_t *)range->shadow + (place.run.address - range->address);
		size_t whole = gp_changes_room_of(place.run.size);

		if (place.run.size <= GP_CHANGES_SHORT &&
		    memcmp(shadow, place.run.bytes, place.run.size) == 0)
			continue;
		memmove(changes->bytes + kept, changes->bytes + place.at - whole, whole);
		kept += whole;
	}
	changes->size = kept;
}

/* A look for each stage, from the last word to the first: nothing is seen before what the other end
 * stores behind it, so no flag is newer than its data.  false: it is too much. */
static bool
look_in_reverse(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_changes *looks = picture->looks, *all = &looks[INSIDE];

	for (int stage = STAGES; stage > 0; stage--) {
		if (!gp_look_back(&looks[stage - 1], &picture->ordered, ranges, count))
			return false;
	}
	for (int stage = EDGES; stage < STAGES; stage++) {
		struct gp_place place = gp_place_first(all, ranges, count);
		struct gp_place earlier = gp_place_first(&looks[stage], ranges, count);
		struct part parts[2];

		for (; place.run.size; gp_place_next(&place)) {
			int of_stage = parts_of(&place, (enum stage)stage, parts);

			for (int i = 0; i < of_stage; i++)
				take_earlier(&earlier, &place, &parts[i]);
		}
	}
	drop_unchanged(all, ranges, count);
	return true;
}

/* Both ends agree on it from now on. */
static void
agree(const struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_place place = gp_place_first(changes, ranges, count);

	for (; place.run.size; gp_place_next(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];

		memcpy((uint8_t *)range->shadow + (place.run.address - range->address),
		       place.run.bytes, place.run.size);
		gp_marks_note(range, &place.run);
	}
}

static void
part_write(struct gp_picture *picture, const struct gp_place *place, const struct part *part)
{
	const struct gp_changes_range *range = &place->ranges[place->range];
	const uint8_t *bytes = (const uint8_t *)place->run.bytes + part->at;
	uint64_t address = place->run.address + part->at;

	if (picture->merges)
		gp_merge_write(&picture->ordered, address, bytes,
			       (const uint8_t *)range->shadow + (address - range->address),
			       part->size);
	else
		gp_changes_write(&picture->ordered, address, bytes, part->size);
}

/* false: there is no memory for it. */
static bool
put_in_order(struct gp_picture *picture, const struct gp_changes *changes,
	     const struct gp_changes_range *ranges, size_t count)
{
	struct gp_changes *ordered = &picture->ordered;

	ordered->size = 0;
	/* A run of 16 bytes, with its head, may become three of 8. */
	if (!gp_look_make_room(ordered, changes->size * 3))
		return false;
	for (int stage = 0; stage < STAGES; stage++) {
		struct gp_place place = gp_place_first(changes, ranges, count);
		struct part parts[2];

		for (; place.run.size; gp_place_next(&place)) {
			int of_stage = parts_of(&place, (enum stage)stage, parts);

			for (int i = 0; i < of_stage; i++)
				part_write(picture, &place, &parts[i]);
		}
	}
	return true;
}

/* What the other end will have in the 8 bytes from at on, if all of these are in the range. */
static bool
may_send(const struct gp_picture *picture, const struct gp_changes_range *range, uint64_t at,
	 const struct gp_change *run)
{
	uint8_t bytes[8];
	uint64_t value;

	if (at < range->address || range->size < 8 || at - range->address > range->size - 8)
		return true;
	if (at >= run->address && run->size >= 8 && at - run->address <= run->size - 8) {
		memcpy(&value, (const uint8_t *)run->bytes + (at - run->address), 8);
		return picture->may(picture->arg, value);
	}
	memcpy(bytes, (const uint8_t *)range->shadow + (at - range->address), 8);
	for (size_t i = 0; i < 8; i++) {
		if (at + i - run->address < run->size)
			bytes[i] = ((const uint8_t *)run->bytes)[at + i - run->address];
	}
	memcpy(&value, bytes, 8);
	return picture->may(picture->arg, value);
}

/* All are asked about, also behind one that may not be sent. */
static bool
may_take(const struct gp_picture *picture, const struct gp_changes *changes,
	 const struct gp_changes_range *ranges, size_t count)
{
	bool may = true;

	if (!picture->may)
		return true;
	for (struct gp_place place = gp_place_first(changes, ranges, count); place.run.size;
	     gp_place_next(&place)) {
		uint64_t end = place.run.address + place.run.size;

		for (uint64_t at = place.run.address & ~(uint64_t)7; at < end; at += 8)
			may &= may_send(picture, &ranges[place.range], at, &place.run);
	}
	return may;
}

/* The changes are what is taken; false: they are not. */
static bool
take(struct gp_picture *picture, const struct gp_changes *changes,
     const struct gp_changes_range *ranges, size_t count)
{
	if (picture->has_read)
		picture->has_read(picture->arg);
	if (!may_take(picture, changes, ranges, count))
		return false;
	if (!put_in_order(picture, changes, ranges, count))
		return false;
	agree(changes, ranges, count);
	return true;
}

/* What everything was at one moment.  -1: it is too much; 0: nothing held still, else 1, and it is
 * in looks[*last]. */
static int
look_until_alike(struct gp_changes *looks, const struct gp_changes_range *ranges, size_t count,
		 int *last)
{
	uint64_t all = size_of(ranges, count);
	int most = all <= SMALL ? SMALL_LOOKS_MAX : LOOKS_MAX, restless = 0;
	struct moving moving;

	moving.count = 0;
	*last = 0;
	if (gp_look(&looks[0], ranges, count) < all)
		return -1;
	for (int i = 1; looks[*last].size; i++) {
		struct gp_changes *before = &looks[*last], *now = &looks[i % 2];

		if (gp_look(now, ranges, count) < all)
			return -1;
		if (is_alike(before, &moving, now))
			break;
		*last = i % 2;
		if (i + 1 == most)
			return 0;
		if (!find_moving(&moving, now, before, ranges, count))
			continue;
		if (!hold_still(&moving)) {
			moving.count = 0;
			if (++restless == RESTLESS_MAX)
				return 0;
		}
	}
	return 1;
}

static void
drop_short(struct gp_changes *changes)
{
	struct gp_change run;
	size_t at = 0, kept = 0;

	while (gp_changes_next(changes->bytes, changes->size, &at, &run) > 0) {
		size_t whole = gp_changes_room_of(run.size);

		if (run.size <= GP_CHANGES_SHORT)
			continue;
		memmove(changes->bytes + kept, changes->bytes + at - whole, whole);
		kept += whole;
	}
	changes->size = kept;
}

static uint64_t
take_part(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count,
	  enum gp_picture_part part)
{
	struct gp_changes *changes = &picture->looks[0];
	uint64_t done = gp_look(changes, ranges, count);

	if (part == GP_PICTURE_LONG)
		drop_short(changes);
	return take(picture, changes, ranges, count) ? done : 0;
}

/* What is too much is taken otherwise. */
static uint64_t
take_all(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count)
{
	int last, r = look_until_alike(picture->looks, ranges, count, &last);

	if (r < 0 || (r == 0 && !look_in_reverse(picture, ranges, count)))
		return 0;
	if (!take(picture, &picture->looks[r ? last : INSIDE], ranges, count))
		return 0;
	return size_of(ranges, count);
}

uint64_t
gp_picture_take(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count,
		enum gp_picture_part part)
{
	uint64_t done;

	picture->ordered.size = 0;
	done = part == GP_PICTURE_ALL ? take_all(picture, ranges, count)
				      : take_part(picture, ranges, count, part);
	/* A look backwards uses its memory, and may find it too little. */
	if (done == 0)
		picture->ordered.size = 0;
	return done;
}

static void
drop(struct gp_changes *changes)
{
	free(changes->bytes);
	*changes = (struct gp_changes){ 0 };
}

static void
trim(struct gp_picture *picture, size_t most)
{
	for (int i = 0; i < GP_PICTURE_LOOKS; i++) {
		if (picture->looks[i].room > most)
			drop(&picture->looks[i]);
	}
	if (picture->ordered.room > most)
		drop(&picture->ordered);
}

void
gp_picture_trim(struct gp_picture *picture)
{
	trim(picture, KEPT_MAX);
}

void
gp_picture_fini(struct gp_picture *picture)
{
	trim(picture, 0);
}
