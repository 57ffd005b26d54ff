/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_changes.h"

#include "protocol/enc.h"
#include "protocol/host_merge.h"
#include "protocol/little_endian.h"

#include <string.h>

/* A run is not cut if less than this would fit. */
#define RUN_MIN ((size_t)1024)

/* Kernels of the software device access the memory concurrently, as a GPU would; a GPU's accesses
 * are invisible to a thread sanitizer. */
#define NO_SANITIZE_THREAD __attribute__((no_sanitize_thread))

size_t
gp_changes_get_unit(const void *at, size_t left)
{
	uintptr_t address = (uintptr_t)at;

	if (address % 8 == 0 && left >= 8)
		return 8;
	return address % 4 == 0 && left >= 4 ? 4 : 1;
}

NO_SANITIZE_THREAD static inline void
unit_load(uint8_t *to, const uint8_t *from, size_t unit)
{
	uint64_t eight;
	uint32_t four;

	if (unit == 8) {
		eight = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
		memcpy(to, &eight, 8);
	} else if (unit == 4) {
		four = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_ACQUIRE);
		memcpy(to, &four, 4);
	} else {
		*to = __atomic_load_n(from, __ATOMIC_ACQUIRE);
	}
}

/* Ascending order: a flag is read before data at higher addresses. */
NO_SANITIZE_THREAD void
gp_changes_load(void *to, const void *from, size_t size)
{
	for (size_t at = 0, unit; at < size; at += unit) {
		unit = gp_changes_get_unit((const uint8_t *)from + at, size - at);
		unit_load((uint8_t *)to + at, (const uint8_t *)from + at, unit);
	}
}

/* Descending order. */
NO_SANITIZE_THREAD void
gp_changes_load_reverse(void *to, const void *from, size_t size)
{
	while (size) {
		const uint8_t *end = (const uint8_t *)from + size;
		size_t unit = gp_changes_get_unit(end, size);

		size -= unit;
		unit_load((uint8_t *)to + size, end - unit, unit);
	}
}

/* Reads each word once. A function that compares changing memory, such as memcmp(), may read a word
 * twice and report an equality that never existed. */
NO_SANITIZE_THREAD static inline uint64_t
words_xor(const uint64_t *copy, const uint64_t *shadow, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all |= __atomic_load_n(&copy[i], __ATOMIC_RELAXED) ^ shadow[i];
	return all;
}

NO_SANITIZE_THREAD bool
gp_changes_compare_equal(const void *copy, const void *shadow, size_t size)
{
	const uint64_t *a = copy, *b = shadow;
	size_t count = size / 8, i = 0;

	if (((uintptr_t)a | (uintptr_t)b | size) % 8)
		return false;
	for (; count - i >= 16; i += 16) {
		if (words_xor(a + i, b + i, 16))
			return false;
	}
	return words_xor(a + i, b + i, count - i) == 0;
}

/* Bytes that are stored later become visible later. */
NO_SANITIZE_THREAD void
gp_changes_store(void *to, const void *from, size_t size)
{
	uint8_t *out = to;
	const uint8_t *in = from;

	while (size) {
		size_t unit = gp_changes_get_unit(out, size);
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
run_get_room(const struct gp_changes *changes)
{
	size_t left = changes->capacity - changes->size;

	return left <= GP_CHANGES_HEAD ? 0 : (left - GP_CHANGES_HEAD) & ~(size_t)7;
}

void
gp_changes_write(struct gp_changes *changes, uint64_t address, const void *bytes, size_t size)
{
	uint8_t *at = changes->bytes + changes->size;
	size_t whole = gp_changes_get_run_size(size);

	gp_put_u64(at, address);
	gp_put_u32(at + 8, (uint32_t)size);
	gp_put_u32(at + 12, 0);
	memcpy(at + GP_CHANGES_HEAD, bytes, size);
	memset(at + GP_CHANGES_HEAD + size, 0, whole - GP_CHANGES_HEAD - size);
	changes->size += whole;
}

size_t
gp_changes_write_all(struct gp_changes *changes, const struct gp_changes_range *range,
		     size_t offset)
{
	size_t size = range->size - offset, capacity = run_get_room(changes);
	uint8_t *shadow = (uint8_t *)range->shadow + offset;

	if (size > capacity)
		size = capacity;
	if (size == 0)
		return 0;
	gp_changes_load(shadow, (const uint8_t *)range->copy + offset, size);
	gp_changes_write(changes, range->address + offset, shadow, size);
	return size;
}

bool
gp_changes_move(struct gp_changes *changes, const struct gp_changes *all, size_t *at, size_t *skip)
{
	struct gp_change run;
	size_t begin = changes->size, next = *at, capacity;

	while ((capacity = run_get_room(changes)) > 0 &&
	       gp_changes_next(all->bytes, all->size, &next, &run) > 0) {
		size_t size = run.size - *skip;

		if (run.same || run.packed) {
			/* Runs with unchanged bytes and packed runs are copied whole. */
			size = next - *at;
			if (size > changes->capacity - changes->size)
				break;
			memcpy(changes->bytes + changes->size, all->bytes + *at, size);
			changes->size += size;
			*at = next;
			continue;
		}
		/* Short runs are not cut. */
		if (size > capacity && (size <= GP_CHANGES_SHORT || capacity < RUN_MIN))
			break;
		size = size < capacity ? size : capacity;
		gp_changes_write(changes, run.address + *skip, (const uint8_t *)run.bytes + *skip,
				 size);
		*skip += size;
		if (*skip < run.size)
			break;
		*skip = 0;
		*at = next;
	}
	return changes->size > begin;
}

int
gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change)
{
	const uint8_t *head = (const uint8_t *)bytes + *at;
	uint64_t left;
	uint32_t length, number;

	if (*at == size)
		return 0;
	if (size - *at < GP_CHANGES_HEAD)
		return -1;
	change->address = gp_read_le64(head);
	change->size = gp_read_le32(head + 8);
	change->bytes = head + GP_CHANGES_HEAD;
	number = gp_read_le32(head + 12);
	change->same = change->size <= GP_CHANGES_MASKED ? number : 0;
	change->packed = change->size <= GP_CHANGES_MASKED ? 0 : number;
	length = change->packed ? change->packed : change->size;
	left = size - *at - GP_CHANGES_HEAD;
	if (change->size == 0 || length > left || gp_changes_get_run_size(length) > size - *at ||
	    change->address > UINT64_MAX - change->size ||
	    (change->size < GP_CHANGES_MASKED && change->same >> change->size))
		return -1;
	*at += gp_changes_get_run_size(length);
	return 1;
}

bool
gp_changes_are_valid(const void *bytes, size_t size)
{
	struct gp_change change;
	size_t at = 0;
	int r;

	while ((r = gp_changes_next(bytes, size, &at, &change)) > 0) {
		if (change.packed && !gp_merge_is_valid(&change))
			return false;
	}
	return r == 0;
}

void
gp_changes_for_each(const void *bytes, size_t size,
		    void (*store)(void *arg, const struct gp_change *change), void *arg)
{
	struct gp_change change;
	size_t at = 0;

	while (gp_changes_next(bytes, size, &at, &change) > 0) {
		if (change.packed)
			gp_merge_for_each(&change, store, arg);
		else
			store(arg, &change);
	}
}
