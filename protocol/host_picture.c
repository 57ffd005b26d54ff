/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_picture.h"

#include "protocol/enc.h"

#include <stdlib.h>
#include <string.h>

/* What is looked at in one go. */
#define STEP ((size_t)1024)
#define LOOKS_MAX 8
/* Runs that move too fast for a look at everything: so many bytes of them are looked at alone, and
 * so often. */
#define MOVING_MAX 512
#define MOVING_LOOKS 64
/* What is kept of the memory for pictures. */
#define KEPT_MAX ((size_t)256 << 10)

static bool
make_room(struct gp_changes *changes, size_t size)
{
	size_t room = changes->room ? changes->room : 4096;
	uint8_t *bytes;

	if (changes->room - changes->size >= size)
		return true;
	while (room - changes->size < size)
		room *= 2;
	bytes = realloc(changes->bytes, room);
	if (!bytes)
		return false;
	changes->bytes = bytes;
	changes->room = room;
	return true;
}

static uint64_t
address_at(const uint8_t *run)
{
	uint64_t address;

	memcpy(&address, run, 8);
	return le64toh(address);
}

/* One that goes through the ranges. */
struct look {
	struct gp_changes *changes;
	size_t last;  /* where the last run of this range is; SIZE_MAX: there is none */
	uint64_t end; /* of that run */
};

/* A run behind the last one is one with it. */
static bool
add_run(struct look *look, uint64_t address, const uint8_t *bytes, size_t size)
{
	struct gp_changes *changes = look->changes;
	size_t old, whole;
	uint8_t *run;

	if (changes->size + gp_changes_room_of(size) > GP_PICTURE_MAX ||
	    !make_room(changes, gp_changes_room_of(size)))
		return false;
	if (look->last == SIZE_MAX || look->end != address) {
		look->last = changes->size;
		look->end = address + size;
		gp_changes_write(changes, address, bytes, size);
		return true;
	}
	run = changes->bytes + look->last;
	old = (size_t)(address - address_at(run));
	whole = gp_changes_room_of(old + size);
	memcpy(run + GP_CHANGES_HEAD + old, bytes, size);
	gp_put_u32(run + 8, (uint32_t)(old + size));
	memset(run + GP_CHANGES_HEAD + old + size, 0, whole - GP_CHANGES_HEAD - old - size);
	changes->size = look->last + whole;
	look->end += size;
	return true;
}

/* A word of 4 bytes, or a byte where there is none. */
static size_t
word_at(uint64_t address, size_t left)
{
	return address % 4 == 0 && left >= 4 ? 4 : 1;
}

static bool
differs(const uint8_t *a, const uint8_t *b, size_t size)
{
	return size == 4 ? memcmp(a, b, 4) != 0 : *a != *b;
}

/* The runs in one step, whose words are in now.  false: there was no room for all. */
static bool
find_in_step(struct look *look, uint64_t address, const uint8_t *now, const uint8_t *shadow,
	     size_t size)
{
	size_t at = 0;

	while (at < size) {
		size_t word = word_at(address + at, size - at), begin = at;

		if (!differs(now + at, shadow + at, word)) {
			at += word;
			continue;
		}
		while (at < size) {
			word = word_at(address + at, size - at);
			if (!differs(now + at, shadow + at, word))
				break;
			at += word;
		}
		if (!add_run(look, address + begin, now + begin, at - begin))
			return false;
	}
	return true;
}

/* Most memory is as it was.  Nothing is taken from here, so that words are torn does not matter;
 * the thread sanitizer would look into memcmp(). */
static bool
is_unchanged(const void *copy, const void *shadow, size_t size)
{
#ifdef __SANITIZE_THREAD__
	return false;
#else
	return memcmp(copy, shadow, size) == 0;
#endif
}

/* false: there was no room for all that has changed. */
static bool
look_at_step(struct look *look, const struct gp_changes_range *range, size_t at, size_t size)
{
	uint8_t memory[STEP + 8] __attribute__((aligned(8)));
	const uint8_t *shadow = (const uint8_t *)range->shadow + at;
	/* As aligned as what it is read from. */
	uint8_t *now = memory + (range->address + at) % 8;

	if (is_unchanged((const uint8_t *)range->copy + at, shadow, size))
		return true;
	gp_changes_load(now, (const uint8_t *)range->copy + at, size);
	return find_in_step(look, range->address + at, now, shadow, size);
}

/* What has changed, as far as there is room.  How many bytes were looked at. */
static uint64_t
look_at(struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	uint64_t done = 0;

	changes->size = 0;
	for (size_t i = 0; i < count; i++) {
		const struct gp_changes_range *range = &ranges[i];
		struct look look = { .changes = changes, .last = SIZE_MAX };
		size_t step;

		for (size_t at = 0; at < range->size; at += step, done += step) {
			/* Up to the next multiple, so that most steps are of whole words. */
			step = STEP - (range->address + at) % STEP;
			if (step > range->size - at)
				step = range->size - at;
			if (!look_at_step(&look, range, at, step))
				return done;
		}
	}
	return done;
}

static uint64_t
size_of(const struct gp_changes_range *ranges, size_t count)
{
	uint64_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += ranges[i].size;
	return size;
}

/* A run among those that a look has found: they are in the order of the ranges. */
struct place {
	const struct gp_changes *changes;
	const struct gp_changes_range *ranges;
	size_t count;
	size_t range, at;
	struct gp_change run; /* size 0: there is no more */
};

static void
go_on(struct place *place)
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

static struct place
first(const struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	struct place place = { .changes = changes, .ranges = ranges, .count = count };

	go_on(&place);
	return place;
}

static bool
is_same_run(const struct place *a, const struct place *b)
{
	return a->run.size && b->run.size && a->range == b->range &&
	       a->run.address == b->run.address && a->run.size == b->run.size;
}

/* The next run of the place is, or lies in front of, that of the other one. */
static bool
is_not_behind(const struct place *a, const struct place *b)
{
	return a->run.size && (!b->run.size || a->range < b->range ||
			       (a->range == b->range && a->run.address <= b->run.address));
}

/* Runs of one look that an earlier one did not see like that. */
struct moving {
	struct {
		const uint8_t *memory;
		uint8_t *bytes; /* of the look */
		uint32_t size;
	} runs[MOVING_MAX / 4];
	size_t count, size;
};

/* false: they are too many. */
static bool
find_moving(struct moving *moving, const struct gp_changes *now, const struct gp_changes *earlier,
	    const struct gp_changes_range *ranges, size_t count)
{
	struct place place = first(now, ranges, count), old = first(earlier, ranges, count);

	moving->count = moving->size = 0;
	for (; place.run.size; go_on(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];

		while (is_not_behind(&old, &place) && !is_same_run(&old, &place))
			go_on(&old);
		if (is_same_run(&old, &place) &&
		    memcmp(old.run.bytes, place.run.bytes, place.run.size) == 0)
			continue;
		moving->size += place.run.size;
		if (moving->size > MOVING_MAX ||
		    moving->count == sizeof(moving->runs) / sizeof(moving->runs[0]))
			return false;
		moving->runs[moving->count].memory =
			(const uint8_t *)range->copy + (place.run.address - range->address);
		moving->runs[moving->count].bytes =
			now->bytes + ((const uint8_t *)place.run.bytes - now->bytes);
		moving->runs[moving->count++].size = place.run.size;
	}
	return true;
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

/* Of the run, what an earlier look has seen as well. */
static void
take_earlier(struct place *earlier, const struct place *place, uint8_t *bytes, uint8_t *known)
{
	uint64_t address = place->run.address, end = address + place->run.size;

	while (earlier->run.size && (earlier->range < place->range ||
				     (earlier->range == place->range &&
				      earlier->run.address + earlier->run.size <= address)))
		go_on(earlier);
	for (uint64_t at = address; at < end && earlier->run.size && earlier->range == place->range;
	     at++) {
		if (at < earlier->run.address)
			continue;
		/* Runs of one look are apart, so a short one meets few of them. */
		while (earlier->run.size && earlier->range == place->range &&
		       earlier->run.address + earlier->run.size <= at)
			go_on(earlier);
		if (!earlier->run.size || earlier->range != place->range ||
		    at < earlier->run.address)
			continue;
		bytes[at - address] =
			((const uint8_t *)earlier->run.bytes)[at - earlier->run.address];
		known[at - address] = 1;
	}
}

/* No two looks were alike.  Of short runs in the last one: what the first of these three saw, else
 * what the second saw, else nothing yet.  In place: no run gets longer. */
static void
make_older(struct gp_changes *now, const struct gp_changes *second, const struct gp_changes *third,
	   const struct gp_changes_range *ranges, size_t count)
{
	struct place place = first(now, ranges, count);
	struct place in_second = first(second, ranges, count);
	struct place in_third = first(third, ranges, count);
	struct gp_changes kept = { .bytes = now->bytes, .room = now->room };

	for (; place.run.size; go_on(&place)) {
		uint8_t bytes[GP_CHANGES_SHORT], known[GP_CHANGES_SHORT] = { 0 };

		if (place.run.size > GP_CHANGES_SHORT) {
			size_t whole = gp_changes_room_of(place.run.size);

			memmove(kept.bytes + kept.size, now->bytes + place.at - whole, whole);
			kept.size += whole;
			continue;
		}
		take_earlier(&in_second, &place, bytes, known);
		take_earlier(&in_third, &place, bytes, known);
		for (size_t at = 0, end; at < place.run.size; at = end) {
			for (end = at; end < place.run.size && known[end]; end++)
				continue;
			if (end > at)
				gp_changes_write(&kept, place.run.address + at, bytes + at,
						 end - at);
			else
				end++;
		}
	}
	now->size = kept.size;
}

/* Both ends agree on it from now on. */
static void
agree(const struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	for (struct place place = first(changes, ranges, count); place.run.size; go_on(&place)) {
		const struct gp_changes_range *range = &ranges[place.range];

		memcpy((uint8_t *)range->shadow + (place.run.address - range->address),
		       place.run.bytes, place.run.size);
	}
}

enum stage {
	INSIDE,
	EDGES,
	PAIRS,
	WORDS,
	STAGES
};

static void
write_stage(struct gp_changes *changes, const struct gp_change *run, enum stage stage)
{
	const uint8_t *bytes = run->bytes;
	size_t size = run->size, front = 8 - run->address % 8, back = (run->address + size) % 8;

	back = back ? back : 8;
	if (size <= GP_CHANGES_SHORT) {
		if (stage == (size > 4 ? PAIRS : WORDS))
			gp_changes_write(changes, run->address, bytes, size);
	} else if (stage == INSIDE && size > front + back) {
		gp_changes_write(changes, run->address + front, bytes + front, size - front - back);
	} else if (stage == EDGES) {
		gp_changes_write(changes, run->address, bytes, front);
		gp_changes_write(changes, run->address + size - back, bytes + size - back, back);
	}
}

/* false: there is no memory for it. */
static bool
put_in_order(struct gp_changes *ordered, const struct gp_changes *changes)
{
	ordered->size = 0;
	/* A run of 16 bytes, with its head, may become three of 8. */
	if (!make_room(ordered, changes->size * 3))
		return false;
	for (int stage = 0; stage < STAGES; stage++) {
		struct gp_change run;
		size_t at = 0;

		while (gp_changes_next(changes->bytes, changes->size, &at, &run) > 0)
			write_stage(ordered, &run, (enum stage)stage);
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
	for (struct place place = first(changes, ranges, count); place.run.size; go_on(&place)) {
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
	if (!may_take(picture, changes, ranges, count))
		return false;
	if (!put_in_order(&picture->ordered, changes))
		return false;
	agree(changes, ranges, count);
	return true;
}

/* What is too much, or moves on too fast, is taken otherwise. */
static uint64_t
take_all(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count)
{
	struct gp_changes *looks = picture->looks;
	uint64_t all = size_of(ranges, count);
	struct moving moving;
	int last = 0;

	moving.count = 0;
	if (look_at(&looks[0], ranges, count) < all)
		return 0;
	for (int i = 1; i < LOOKS_MAX && looks[last].size; i++) {
		const struct gp_changes *before = &looks[last];

		last = i % 3;
		if (look_at(&looks[last], ranges, count) < all)
			return 0;
		if (is_alike(before, &moving, &looks[last])) {
			last = (i + 2) % 3;
			break;
		}
		if (i + 1 == LOOKS_MAX)
			make_older(&looks[last], before, &looks[(i + 1) % 3], ranges, count);
		else if (!find_moving(&moving, &looks[last], before, ranges, count) ||
			 !hold_still(&moving))
			moving.count = 0;
	}
	return take(picture, &looks[last], ranges, count) ? all : 0;
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

uint64_t
gp_picture_take(struct gp_picture *picture, const struct gp_changes_range *ranges, size_t count,
		enum gp_picture_part part)
{
	struct gp_changes *changes = &picture->looks[0];
	uint64_t done;

	picture->ordered.size = 0;
	if (part == GP_PICTURE_ALL)
		return take_all(picture, ranges, count);
	done = look_at(changes, ranges, count);
	if (part == GP_PICTURE_LONG)
		drop_short(changes);
	return take(picture, changes, ranges, count) ? done : 0;
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
	for (int i = 0; i < 3; i++) {
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
