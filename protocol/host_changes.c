/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_changes.h"

#include "protocol/enc.h"

#include <string.h>

#define HEAD 16
/* What is looked at in one go. */
#define STEP ((size_t)1024)
#define LOOKS_MAX 8

/* Kernels of the software device use the memory at the same time, as those of a GPU do, of which no
 * sanitizer knows. */
#define BESIDE_KERNELS __attribute__((no_sanitize_thread))

static size_t
padded(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* How much can be moved at once without tearing what is aligned. */
static size_t
unit_at(const void *at, size_t left)
{
	uintptr_t address = (uintptr_t)at;

	if (address % 8 == 0 && left >= 8)
		return 8;
	return address % 4 == 0 && left >= 4 ? 4 : 1;
}

/* What is read later was looked at later: a flag before its data. */
BESIDE_KERNELS void
gp_changes_load(void *to, const void *from, size_t size)
{
	uint8_t *out = to;
	const uint8_t *in = from;

	while (size) {
		size_t unit = unit_at(in, size);
		uint64_t eight;
		uint32_t four;

		if (unit == 8) {
			eight = __atomic_load_n((const uint64_t *)(const void *)in,
						__ATOMIC_ACQUIRE);
			memcpy(out, &eight, 8);
		} else if (unit == 4) {
			four = __atomic_load_n((const uint32_t *)(const void *)in,
					       __ATOMIC_ACQUIRE);
			memcpy(out, &four, 4);
		} else {
			*out = __atomic_load_n(in, __ATOMIC_ACQUIRE);
		}
		out += unit;
		in += unit;
		size -= unit;
	}
}

/* And what is stored later is seen later. */
BESIDE_KERNELS void
gp_changes_store(void *to, const void *from, size_t size)
{
	uint8_t *out = to;
	const uint8_t *in = from;

	while (size) {
		size_t unit = unit_at(out, size);
		uint64_t eight;
		uint32_t four;

		if (unit == 8) {
			memcpy(&eight, in, 8);
			__atomic_store_n((uint64_t *)(void *)out, eight, __ATOMIC_RELEASE);
		} else if (unit == 4) {
			memcpy(&four, in, 4);
			__atomic_store_n((uint32_t *)(void *)out, four, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(out, *in, __ATOMIC_RELEASE);
		}
		out += unit;
		in += unit;
		size -= unit;
	}
}

static size_t
room_for_run(const struct gp_changes *changes)
{
	size_t left = changes->room - changes->size;

	return left <= HEAD ? 0 : (left - HEAD) & ~(size_t)7;
}

/* The bytes come from memory that nobody else uses. */
static void
write_run(struct gp_changes *changes, uint64_t address, const uint8_t *bytes, size_t size)
{
	uint8_t *at = changes->bytes + changes->size;

	gp_put_u64(at, address);
	gp_put_u32(at + 8, (uint32_t)size);
	gp_put_u32(at + 12, 0);
	memcpy(at + HEAD, bytes, size);
	memset(at + HEAD + size, 0, padded(size) - size);
	changes->size += HEAD + padded(size);
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
find_in_step(struct gp_changes *changes, uint64_t address, const uint8_t *now, uint8_t *shadow,
	     size_t size)
{
	size_t at = 0;

	while (at < size) {
		size_t word = word_at(address + at, size - at), begin = at, room;

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
		room = room_for_run(changes);
		if (at - begin > room)
			return false;
		write_run(changes, address + begin, now + begin, at - begin);
		memcpy(shadow + begin, now + begin, at - begin);
	}
	return true;
}

/* false: there was no room for all that has changed. */
static bool
look_at_step(struct gp_changes *changes, const struct gp_changes_range *range, size_t at,
	     size_t size)
{
	uint8_t memory[STEP + 8] __attribute__((aligned(8)));
	uint8_t *shadow = (uint8_t *)range->shadow + at;
	/* As aligned as what it is read from. */
	uint8_t *now = memory + (range->address + at) % 8;

	gp_changes_load(now, (const uint8_t *)range->copy + at, size);
	return memcmp(now, shadow, size) == 0 ||
	       find_in_step(changes, range->address + at, now, shadow, size);
}

/* How many bytes, of the first `most`, were dealt with. */
static uint64_t
look(struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count, uint64_t most)
{
	uint64_t done = 0;

	for (size_t i = 0; i < count; i++) {
		const struct gp_changes_range *range = &ranges[i];
		size_t step;

		for (size_t at = 0; at < range->size && done < most; at += step, done += step) {
			/* Up to the next multiple, so that most steps are of whole words. */
			step = STEP - (range->address + at) % STEP;
			if (step > range->size - at)
				step = range->size - at;
			if (!look_at_step(changes, range, at, step))
				return done;
		}
	}
	return done;
}

/* Each run as it was seen last, also where it was seen twice. */
static void
refresh(struct gp_changes *changes, size_t from, const struct gp_changes_range *ranges,
	size_t count)
{
	struct gp_change change;
	size_t at = from, before = from;

	while (gp_changes_next(changes->bytes, changes->size, &at, &change) > 0) {
		for (size_t i = 0; i < count; i++) {
			uint64_t offset = change.address - ranges[i].address;

			if (offset < ranges[i].size)
				memcpy(changes->bytes + before + HEAD,
				       (const uint8_t *)ranges[i].shadow + offset, change.size);
		}
		before = at;
	}
}

uint64_t
gp_changes_find(struct gp_changes *changes, const struct gp_changes_range *ranges, size_t count)
{
	size_t begin = changes->size, before;
	uint64_t done = look(changes, ranges, count, UINT64_MAX);
	int looks = 1;

	for (before = begin; changes->size != before && looks < LOOKS_MAX; looks++) {
		before = changes->size;
		(void)look(changes, ranges, count, done);
	}
	if (looks > 2)
		refresh(changes, begin, ranges, count);
	return done;
}

size_t
gp_changes_take_all(struct gp_changes *changes, const struct gp_changes_range *range, size_t offset)
{
	size_t size = range->size - offset, room = room_for_run(changes);
	uint8_t *shadow = (uint8_t *)range->shadow + offset;

	if (size > room)
		size = room;
	if (size == 0)
		return 0;
	gp_changes_load(shadow, (const uint8_t *)range->copy + offset, size);
	write_run(changes, range->address + offset, shadow, size);
	return size;
}

int
gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change)
{
	const uint8_t *head = (const uint8_t *)bytes + *at;
	uint64_t address;
	uint32_t length, zero;

	if (*at == size)
		return 0;
	if (size - *at < HEAD)
		return -1;
	memcpy(&address, head, 8);
	memcpy(&length, head + 8, 4);
	memcpy(&zero, head + 12, 4);
	change->address = le64toh(address);
	change->size = le32toh(length);
	change->bytes = head + HEAD;
	if (zero || change->size == 0 || change->size > size - *at - HEAD ||
	    padded(change->size) > size - *at - HEAD || change->address > UINT64_MAX - change->size)
		return -1;
	*at += HEAD + padded(change->size);
	return 1;
}

bool
gp_changes_are_sound(const void *bytes, size_t size)
{
	struct gp_change change;
	size_t at = 0;
	int r;

	while ((r = gp_changes_next(bytes, size, &at, &change)) > 0)
		continue;
	return r == 0;
}

void
gp_changes_each(const void *bytes, size_t size,
		void (*store)(void *arg, const struct gp_change *change), void *arg)
{
	for (int round = 0; round < 2; round++) {
		struct gp_change change;
		size_t at = 0;

		while (gp_changes_next(bytes, size, &at, &change) > 0) {
			if ((change.size <= GP_CHANGES_SHORT) == (round == 1))
				store(arg, &change);
		}
	}
}
