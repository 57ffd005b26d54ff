/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FATBIN_HEADER_SIZE 16u
#define ENTRY_HEADER_MIN 64u

static uint16_t
rd16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t
rd32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t
rd64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

int
gp_fatbin_walk(struct gp_fatbin_walk *walk, const void *fatbin, size_t size)
{
	size_t exact;
	const uint8_t *p = fatbin;
	int r;

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

/* The name must lie inside the header; a fatbin that says otherwise is not nvcc's. */
static int
read_name(const uint8_t *p, uint32_t header_size, struct gp_fatbin_entry *entry)
{
	uint32_t offset = rd32(p + 32), length = rd32(p + 36);

	entry->name = NULL;
	entry->name_size = 0;
	if (!offset || !length)
		return 0;
	if (offset > header_size || length > header_size - offset)
		return -EBADMSG;
	entry->name = (const char *)p + offset;
	entry->name_size = length;
	return 0;
}

static int
read_sizes(const uint8_t *p, uint64_t payload_size, struct gp_fatbin_entry *entry)
{
	uint32_t compressed = rd32(p + 16);
	uint64_t raw = rd64(p + 56);

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))) {
		entry->stored_size = payload_size;
		entry->raw_size = payload_size;
		return 0;
	}
	if (!compressed || compressed > payload_size || !raw || raw > GP_IMAGE_SIZE_MAX)
		return -EBADMSG;
	entry->stored_size = compressed;
	entry->raw_size = raw;
	return 0;
}

int
gp_fatbin_next(struct gp_fatbin_walk *walk, struct gp_fatbin_entry *entry_p)
{
	const uint8_t *p = walk->next;
	size_t left = (size_t)(walk->end - p);
	struct gp_fatbin_entry entry = { .start = p };
	uint32_t header_size;
	uint64_t payload_size;
	int r;

	if (left == 0)
		return GP_IMAGE_E_END;
	if (left < ENTRY_HEADER_MIN)
		return -EBADMSG;
	header_size = rd32(p + 4);
	payload_size = rd64(p + 8);
	if (header_size < ENTRY_HEADER_MIN || header_size % 8 || header_size > left ||
	    payload_size % 8 || payload_size > left - header_size)
		return -EBADMSG;
	entry.kind = rd16(p);
	entry.sm = rd32(p + 28);
	entry.flags = rd64(p + 40);
	entry.size = header_size + payload_size;
	entry.payload = p + header_size;
	r = read_name(p, header_size, &entry);
	if (!r)
		r = read_sizes(p, payload_size, &entry);
	if (r)
		return r;
	walk->next = p + entry.size;
	*entry_p = entry;
	return 0;
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
