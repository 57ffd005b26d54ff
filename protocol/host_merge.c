/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_merge.h"

#include "protocol/enc.h"
#include "protocol/little_endian.h"

#include <string.h>

#define BLOCK GP_CHANGES_MASKED
#define SEGMENT ((size_t)2048)
#define BITMAPS 16
#define MASK 4

/* As in host_changes.c. */
#define NO_SANITIZE_THREAD __attribute__((no_sanitize_thread))

static uint32_t
size_to_mask(size_t size)
{
	return size >= 32 ? UINT32_MAX : (UINT32_C(1) << size) - 1;
}

/* Returns a bit for each of 8 bytes that are equal. */
static inline uint32_t
eight_compare(const uint8_t *a, const uint8_t *b)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t left, right, differ, equal;

	memcpy(&left, a, 8);
	memcpy(&right, b, 8);
	differ = le64toh(left ^ right);
	equal = ~(((differ & low) + low) | differ | low);
	return (uint32_t)((equal >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

/* Returns a bit for each of at most 32 bytes that are equal. */
static uint32_t
block_compare(const uint8_t *a, const uint8_t *b, size_t size)
{
	uint32_t same = 0;
	size_t at = 0;

	for (; size - at >= 8; at += 8)
		same |= eight_compare(a + at, b + at) << at;
	for (; at < size; at++)
		same |= (uint32_t)(a[at] == b[at]) << at;
	return same;
}

static bool
segment_has_same(const uint8_t *a, const uint8_t *b, size_t size)
{
	for (size_t at = 0; at < size; at += BLOCK) {
		if (block_compare(a + at, b + at, size - at < BLOCK ? size - at : BLOCK))
			return true;
	}
	return false;
}

/* Returns the number of bytes from an address on that are in the same aligned unit, at most
 * size. */
static size_t
unit_get_room(uint64_t address, size_t unit, size_t size)
{
	size_t left = unit - (size_t)(address % unit);

	return left < size ? left : size;
}

static void
masked_write(struct gp_changes *changes, uint64_t address, const uint8_t *bytes,
	     const uint8_t *shadow, size_t size)
{
	uint32_t same = block_compare(bytes, shadow, size);
	uint8_t *head = changes->bytes + changes->size;

	if (same == size_to_mask(size))
		return;
	gp_changes_write(changes, address, bytes, size);
	gp_put_u32(head + 12, same);
}

static void
packed_write(struct gp_changes *changes, uint64_t address, const uint8_t *bytes,
	     const uint8_t *shadow, size_t size)
{
	uint8_t *head = changes->bytes + changes->size, *payload = head + GP_CHANGES_HEAD;
	uint64_t masked = 0, repeated = 0, bit = 1;
	size_t used = BITMAPS, step, whole;
	uint32_t last = 0;

	for (size_t at = 0; at < size; at += step, bit <<= 1) {
		uint32_t same;

		step = unit_get_room(address + at, BLOCK, size - at);
		same = block_compare(bytes + at, shadow + at, step);
		masked |= same ? bit : 0;
		repeated |= same && same == last ? bit : 0;
		if (same && same != last) {
			gp_put_u32(payload + used, same);
			used += MASK;
			last = same;
		}
		memcpy(payload + used, bytes + at, step);
		used += step;
	}
	gp_put_u64(head, address);
	gp_put_u32(head + 8, (uint32_t)size);
	gp_put_u32(head + 12, (uint32_t)used);
	gp_put_u64(payload, masked);
	gp_put_u64(payload + 8, repeated);
	whole = gp_changes_get_run_size(used);
	memset(payload + used, 0, whole - GP_CHANGES_HEAD - used);
	changes->size += whole;
}

void
gp_merge_write(struct gp_changes *changes, uint64_t address, const void *bytes, const void *shadow,
	       size_t size)
{
	const uint8_t *now = bytes, *before = shadow;
	size_t plain = 0, step;

	if (size <= BLOCK) {
		masked_write(changes, address, now, before, size);
		return;
	}
	for (size_t at = 0; at < size; at += step) {
		step = unit_get_room(address + at, SEGMENT, size - at);
		if (!segment_has_same(now + at, before + at, step))
			continue;
		if (at > plain)
			gp_changes_write(changes, address + plain, now + plain, at - plain);
		if (step <= BLOCK)
			masked_write(changes, address + at, now + at, before + at, step);
		else
			packed_write(changes, address + at, now + at, before + at, step);
		plain = at + step;
	}
	if (size > plain)
		gp_changes_write(changes, address + plain, now + plain, size - plain);
}

/* Iterator over the blocks of a packed run. */
struct reader {
	const uint8_t *next, *end;
	uint64_t masked, repeated;
	uint64_t address;
	size_t left;
	uint32_t last;
};

static void
reader_init(struct reader *reader, const struct gp_change *packed)
{
	const uint8_t *bytes = packed->bytes;

	*reader = (struct reader){
		.next = bytes + BITMAPS,
		.end = bytes + packed->packed,
		.masked = gp_read_le64(bytes),
		.repeated = gp_read_le64(bytes + 8),
		.address = packed->address,
		.left = packed->size,
	};
}

/* Returns the next block; false if the run is malformed. */
static bool
reader_next(struct reader *reader, struct gp_change *block)
{
	size_t step = unit_get_room(reader->address, BLOCK, reader->left);
	uint32_t same = 0;

	if (reader->masked & 1) {
		if (!(reader->repeated & 1)) {
			if (reader->end - reader->next < MASK)
				return false;
			reader->last = gp_read_le32(reader->next);
			reader->next += MASK;
		}
		same = reader->last;
	}
	if ((same & ~size_to_mask(step)) || step > (size_t)(reader->end - reader->next))
		return false;
	*block = (struct gp_change){ reader->address, reader->next, (uint32_t)step, same, 0 };
	reader->next += step;
	reader->masked >>= 1;
	reader->repeated >>= 1;
	reader->address += step;
	reader->left -= step;
	return true;
}

bool
gp_merge_is_valid(const struct gp_change *packed)
{
	struct gp_change block;
	struct reader reader;

	if (packed->packed < BITMAPS || packed->address % SEGMENT + packed->size > SEGMENT)
		return false;
	reader_init(&reader, packed);
	if (reader.repeated & ~reader.masked)
		return false;
	while (reader.left > 0) {
		if (!reader_next(&reader, &block))
			return false;
	}
	return reader.next == reader.end && reader.masked == 0;
}

void
gp_merge_for_each(const struct gp_change *packed,
		  void (*store)(void *arg, const struct gp_change *change), void *arg)
{
	struct gp_change plain = { 0 }, block; /* plain: adjacent blocks without unchanged bytes */
	struct reader reader;

	reader_init(&reader, packed);
	while (reader.left > 0 && reader_next(&reader, &block)) {
		if (!block.same) {
			if (!plain.size)
				plain = block;
			else
				plain.size += block.size;
			continue;
		}
		if (plain.size)
			store(arg, &plain);
		plain.size = 0;
		if (block.same != size_to_mask(block.size))
			store(arg, &block);
	}
	if (plain.size)
		store(arg, &plain);
}

/* Returns 0xff in each byte whose bit is set. */
static inline uint64_t
bits_to_bytes(uint32_t bits)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t spread = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);

	return ((((spread & low) + low) | spread) >> 7 & UINT64_C(0x0101010101010101)) * 0xff;
}

void
gp_merge_copy(void *to, const void *from, size_t size, uint32_t same)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	size_t at = 0;

	if (!same) {
		memcpy(to, from, size);
		return;
	}
	for (; size - at >= 8; at += 8) {
		uint64_t mask = htole64(bits_to_bytes(same >> at & 0xff)), old, new;

		memcpy(&old, out + at, 8);
		memcpy(&new, in + at, 8);
		old = (old & mask) | (new & ~mask);
		memcpy(out + at, &old, 8);
	}
	for (; at < size; at++)
		out[at] = same >> at & 1 ? out[at] : in[at];
}

/* Compare-and-swap, so that a concurrent store by another writer is not lost. */
NO_SANITIZE_THREAD static void
eight_merge(uint64_t *to, const uint8_t *from, uint32_t changed)
{
	uint64_t mask = htole64(bits_to_bytes(changed)), value, old, merged;

	memcpy(&value, from, 8);
	old = __atomic_load_n(to, __ATOMIC_RELAXED);
	do
		merged = (old & ~mask) | (value & mask);
	while (!__atomic_compare_exchange_n(to, &old, merged, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

NO_SANITIZE_THREAD static void
four_merge(uint32_t *to, const uint8_t *from, uint32_t changed)
{
	uint32_t mask = htole32((uint32_t)bits_to_bytes(changed)), value, old, merged;

	memcpy(&value, from, 4);
	old = __atomic_load_n(to, __ATOMIC_RELAXED);
	do
		merged = (old & ~mask) | (value & mask);
	while (!__atomic_compare_exchange_n(to, &old, merged, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

/* An aligned unit of 8, 4, 2 bytes or 1 byte whose bytes have all changed is written by a single
 * store. */
NO_SANITIZE_THREAD static void
unit_store(uint8_t *to, const uint8_t *from, size_t unit, uint32_t changed)
{
	size_t first, count;
	uint32_t bytes;
	uint16_t two;
	bool whole;

	if (!changed)
		return;
	first = (size_t)__builtin_ctz(changed);
	bytes = changed >> first;
	count = bytes == 1 ? 1 : bytes == 3 ? 2 : bytes == 15 ? 4 : 8;
	whole = bytes == size_to_mask(count) && first % count == 0;
	if (whole && count == 2) {
		memcpy(&two, from + first, 2);
		__atomic_store_n((uint16_t *)(void *)(to + first), two, __ATOMIC_RELEASE);
	} else if (whole) {
		gp_changes_store(to + first, from + first, count);
	} else if (unit == 8) {
		eight_merge((uint64_t *)(void *)to, from, changed);
	} else {
		four_merge((uint32_t *)(void *)to, from, changed);
	}
}

void
gp_merge_store(void *to, const void *from, size_t size, uint32_t same)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	size_t unit;

	if (!same) {
		gp_changes_store(to, from, size);
		return;
	}
	for (size_t at = 0; at < size; at += unit) {
		unit = gp_changes_get_unit(out + at, size - at);
		unit_store(out + at, in + at, unit, ~same >> at & size_to_mask(unit));
	}
}
