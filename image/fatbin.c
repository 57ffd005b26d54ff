/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"

#include "image/fatbin_entry.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FATBIN_HEADER_SIZE 16u

static uint16_t
rd16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

int
gp_fatbin_walk(struct gp_fatbin_walk *walk, const void *fatbin, size_t size)
{
	size_t exact;
	const uint8_t *p = fatbin;
	int r;

	*walk = (struct gp_fatbin_walk){ 0 };
	if (size < 16 || gp_image_kind(fatbin) != GP_IMAGE_FATBIN)
		return -EBADMSG;
	r = gp_image_size(fatbin, &exact);
	if (r)
		return r;
	if (exact != size)
		return -EBADMSG;
	walk->next = p + rd16(p + 6);
	walk->end = p + size;
	return 0;
}

int
gp_fatbin_next(struct gp_fatbin_walk *walk, struct gp_fatbin_entry *entry_p)
{
	size_t left = (size_t)(walk->end - walk->next);
	int r;

	if (left == 0)
		return GP_IMAGE_E_END;
	r = gp_fatbin_entry_read(walk->next, left, entry_p);
	if (!r)
		walk->next += entry_p->size;
	return r;
}

int
gp_fatbin_check(const void *fatbin, size_t size)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	int r = gp_fatbin_walk(&walk, fatbin, size);

	while (!r)
		r = gp_fatbin_next(&walk, &entry);
	return r == GP_IMAGE_E_END ? 0 : r;
}

int
gp_fatbin_check_within(const void *bytes, size_t size, bool begins)
{
	static const uint8_t begin[] = { 0x50, 0xed, 0x55, 0xba, 1, 0, FATBIN_HEADER_SIZE, 0 };
	const uint8_t *at = bytes, *end = at + size;
	int r = 0;

	if (begins && (size < sizeof(begin) || memcmp(bytes, begin, sizeof(begin)) != 0))
		return gp_image_set_wrong("it does not begin as a fatbin");
	while (!r && (at = memmem(at, (size_t)(end - at), begin, sizeof(begin)))) {
		size_t left = (size_t)(end - at);
		uint64_t body;

		if (left < FATBIN_HEADER_SIZE)
			return gp_image_set_wrong("it ends within a fatbin's header");
		memcpy(&body, at + 8, sizeof(body));
		if (body > left - FATBIN_HEADER_SIZE)
			return gp_image_set_wrong("a fatbin of %llu bytes is cut off",
						  (unsigned long long)body);
		r = gp_fatbin_check(at, FATBIN_HEADER_SIZE + body);
		at += FATBIN_HEADER_SIZE + body;
	}
	return r;
}

static int
unpack(const struct gp_fatbin_entry *entry, uint8_t *bytes)
{
	size_t n;

	if (entry->flags & GP_FATBIN_ZSTD) {
		n = ZSTD_decompress(bytes, entry->raw_size, entry->payload, entry->stored_size);
		return ZSTD_isError(n) || n != entry->raw_size ? -EBADMSG : 0;
	}
	if (entry->flags & GP_FATBIN_LZ4) {
		int got = LZ4_decompress_safe((const char *)entry->payload, (char *)bytes,
					      (int)entry->stored_size, (int)entry->raw_size);

		return got < 0 || (size_t)got != entry->raw_size ? -EBADMSG : 0;
	}
	memcpy(bytes, entry->payload, entry->raw_size);
	return 0;
}

int
gp_fatbin_extract(const struct gp_fatbin_entry *entry, size_t limit, void **bytes_p, size_t *size_p)
{
	uint8_t *bytes;
	int r;

	/* The lengths go to LZ4 as int. */
	if (entry->raw_size > limit || entry->raw_size > INT32_MAX ||
	    entry->stored_size > INT32_MAX)
		return -EFBIG;
	bytes = malloc(entry->raw_size + 1);
	if (!bytes)
		return -ENOMEM;
	r = unpack(entry, bytes);
	if (r) {
		free(bytes);
		return r;
	}
	bytes[entry->raw_size] = '\0';
	*bytes_p = bytes;
	*size_p = entry->raw_size;
	return 0;
}

/* Which compute capabilities may use an entry that was made for entry->sm. */
static bool
arch_fits(const struct gp_fatbin_entry *entry, const struct gp_image_target *target,
	  bool any_later_major)
{
	unsigned int major = entry->sm / 10, minor = entry->sm % 10;

	if (entry->flags & GP_FATBIN_ARCH_SPECIFIC)
		return major == target->major && minor == target->minor;
	if (any_later_major && !(entry->flags & GP_FATBIN_FAMILY_SPECIFIC))
		return entry->sm <= target->major * 10 + target->minor;
	return major == target->major && minor <= target->minor;
}

bool
gp_fatbin_usable(const struct gp_fatbin_entry *entry, const struct gp_image_target *target)
{
	if (target->software)
		return entry->kind == GP_FATBIN_PTX;
	return arch_fits(entry, target, entry->kind == GP_FATBIN_PTX);
}

static bool
is_plain(const struct gp_fatbin_entry *entry)
{
	return !(entry->flags & (GP_FATBIN_ARCH_SPECIFIC | GP_FATBIN_FAMILY_SPECIFIC));
}

bool
gp_fatbin_best_code(struct gp_image_blob fatbin, const struct gp_image_target *target,
		    struct gp_fatbin_entry *entry_p)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	bool is_there = false;
	int r = gp_fatbin_walk(&walk, fatbin.data, fatbin.size);

	while (!r && !(r = gp_fatbin_next(&walk, &entry))) {
		if (entry.kind != GP_FATBIN_ELF || !gp_fatbin_usable(&entry, target) ||
		    (is_there && entry.sm <= entry_p->sm))
			continue;
		*entry_p = entry;
		is_there = true;
	}
	return is_there;
}

/* The software device wants the fewest exotic instructions, a GPU the closest version. */
static bool
ptx_is_better(const struct gp_fatbin_entry *a, const struct gp_fatbin_entry *b,
	      const struct gp_image_target *target)
{
	if (is_plain(a) != is_plain(b))
		return is_plain(a);
	return target->software ? a->sm < b->sm : a->sm > b->sm;
}

int
gp_fatbin_best_ptx(struct gp_image_blob fatbin, const struct gp_image_target *target,
		   struct gp_fatbin_entry *entry_p)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry, best = { 0 };
	int r = gp_fatbin_walk(&walk, fatbin.data, fatbin.size);

	if (r)
		return r;
	while (!(r = gp_fatbin_next(&walk, &entry))) {
		if (entry.kind != GP_FATBIN_PTX || !gp_fatbin_usable(&entry, target))
			continue;
		if (!best.start || ptx_is_better(&entry, &best, target))
			best = entry;
	}
	if (r != GP_IMAGE_E_END)
		return r;
	if (!best.start)
		return GP_IMAGE_E_NONE;
	*entry_p = best;
	return 0;
}

/* Of PTX: every one of the best version, and for a GPU the arch-specific ones that fit it. */
static bool
worth_keeping(const struct gp_fatbin_entry *entry, const struct gp_fatbin_entry *best,
	      const struct gp_image_target *target)
{
	if (!gp_fatbin_usable(entry, target))
		return false;
	if (entry->kind != GP_FATBIN_PTX)
		return true;
	if (entry->sm == best->sm && is_plain(entry) == is_plain(best))
		return true;
	return !target->software && !is_plain(entry);
}

static uint8_t *
append(uint8_t *out, const struct gp_fatbin_entry *entry)
{
	memcpy(out, entry->start, entry->size);
	return out + entry->size;
}

int
gp_fatbin_filter(struct gp_image_blob fatbin, const struct gp_image_target *target, uint8_t *out,
		 size_t *size_p, bool *usable_p)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry, best = { 0 }, smallest = { 0 };
	uint8_t *start = out + FATBIN_HEADER_SIZE, *end = start;
	uint64_t body;
	int r = gp_fatbin_best_ptx(fatbin, target, &best);

	if (r && r != GP_IMAGE_E_NONE)
		return r;
	r = gp_fatbin_walk(&walk, fatbin.data, fatbin.size);
	if (r)
		return r;
	while (!(r = gp_fatbin_next(&walk, &entry))) {
		if (worth_keeping(&entry, &best, target))
			end = append(end, &entry);
		if (!smallest.start || entry.size < smallest.size)
			smallest = entry;
	}
	if (r != GP_IMAGE_E_END)
		return r;
	*usable_p = end > start;
	if (end == start && smallest.start)
		end = append(end, &smallest);
	body = (uint64_t)(end - start);
	memcpy(out, fatbin.data, FATBIN_HEADER_SIZE);
	memcpy(out + 8, &body, sizeof(body));
	*size_p = FATBIN_HEADER_SIZE + body;
	return 0;
}
