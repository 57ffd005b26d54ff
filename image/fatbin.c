/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"

#include "image/elf_check.h"
#include "image/fatbin_entry.h"

#include <errno.h>
#include <lz4.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
/* for ZSTD_d_stableOutBuffer */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#define FATBIN_HEADER_SIZE 16u
/* Compressed bytes between two checks of the limiter; four of them can expand to 128 KiB. */
#define FIRST_STEP 256u
#define STEP 1024u
/* 2 GiB, the maximum size of an entry. */
#define WINDOW_LOG_MAX 31

static uint16_t
read_u16(const uint8_t *p)
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
	walk->next = p + read_u16(p + 6);
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
	r = gp_fatbin_entry_parse(walk->next, left, entry_p);
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
gp_fatbin_check_embedded(const void *bytes, size_t size, bool begins)
{
	static const uint8_t begin[] = { 0x50, 0xed, 0x55, 0xba, 1, 0, FATBIN_HEADER_SIZE, 0 };
	const uint8_t *at = bytes, *end = at + size;
	int r = 0;

	if (begins && (size < sizeof(begin) || memcmp(bytes, begin, sizeof(begin)) != 0))
		return gp_image_set_error("missing fatbin header");
	while (!r && (at = memmem(at, (size_t)(end - at), begin, sizeof(begin)))) {
		size_t left = (size_t)(end - at);
		uint64_t body;

		if (left < FATBIN_HEADER_SIZE)
			return gp_image_set_error("truncated fatbin header");
		memcpy(&body, at + 8, sizeof(body));
		if (body > left - FATBIN_HEADER_SIZE)
			return gp_image_set_error("truncated fatbin of %llu bytes",
						  (unsigned long long)body);
		r = gp_fatbin_check(at, FATBIN_HEADER_SIZE + body);
		at += FATBIN_HEADER_SIZE + body;
	}
	return r;
}

static int
stop_check(const struct gp_unpack_limiter *limiter)
{
	return limiter->stop && atomic_load(limiter->stop) ? -ECANCELED : 0;
}

/* Checks the ELF header, of which `size` bytes are decompressed. */
static int
elf_header_check(const struct gp_fatbin_entry *entry, const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;

	if (entry->kind != GP_FATBIN_ELF)
		return 0;
	if (size < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	return memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_machine != GP_ELF_MACHINE_CUDA
		       ? -ENOEXEC
		       : 0;
}

/* Creates a context that writes directly into the result, if the library supports it; this avoids a
 * buffer of up to the same size. NULL: out of memory. */
static ZSTD_DCtx *
create_zstd(void)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();

	if (!context)
		return NULL;
	(void)ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
#ifdef ZSTD_d_stableOutBuffer
	(void)ZSTD_DCtx_setParameter(context, ZSTD_d_stableOutBuffer, 1);
#endif
	return context;
}

static int
unpack_zstd(const struct gp_fatbin_entry *entry, uint8_t *bytes,
	    const struct gp_unpack_limiter *limiter)
{
	ZSTD_DCtx *context = create_zstd();
	ZSTD_outBuffer out = { bytes, entry->raw_size, 0 };
	ZSTD_inBuffer in = { entry->payload, 0, 0 };
	size_t step = FIRST_STEP, left = 1;
	bool is_checked = false;
	int r = context ? 0 : -ENOMEM;

	while (!r && in.pos < entry->stored_size) {
		in.size = entry->stored_size - in.pos < step ? entry->stored_size : in.pos + step;
		step = STEP;
		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_isError(left))
			r = -EBADMSG;
		else if (!is_checked && out.pos >= sizeof(Elf64_Ehdr)) {
			r = elf_header_check(entry, bytes, out.pos);
			is_checked = true;
		}
		if (!r)
			r = stop_check(limiter);
	}
	if (!r && (left || out.pos != entry->raw_size))
		r = -EBADMSG;
	ZSTD_freeDCtx(context);
	return r ? r : elf_header_check(entry, bytes, out.pos);
}

static int
unpack_lz4(const struct gp_fatbin_entry *entry, uint8_t *bytes,
	   const struct gp_unpack_limiter *limiter)
{
	const char *from = (const char *)entry->payload;
	const int begin = (int)sizeof(Elf64_Ehdr);
	int size = (int)entry->stored_size, capacity = (int)entry->raw_size;
	int got = LZ4_decompress_safe_partial(from, (char *)bytes, size,
					      capacity < begin ? capacity : begin, capacity);
	int r;

	if (got < 0)
		return -EBADMSG;
	r = elf_header_check(entry, bytes, (size_t)got);
	if (!r)
		r = stop_check(limiter);
	if (r)
		return r;
	got = LZ4_decompress_safe(from, (char *)bytes, size, capacity);
	return got != capacity ? -EBADMSG : stop_check(limiter);
}

static int
payload_unpack(const struct gp_fatbin_entry *entry, uint8_t *bytes,
	       const struct gp_unpack_limiter *limiter)
{
	size_t n;

	if (limiter && (entry->flags & GP_FATBIN_ZSTD))
		return unpack_zstd(entry, bytes, limiter);
	if (limiter && (entry->flags & GP_FATBIN_LZ4))
		return unpack_lz4(entry, bytes, limiter);
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

static int
payload_extract(const struct gp_fatbin_entry *entry, const struct gp_unpack_limiter *limiter,
		void **bytes_p, size_t *size_p)
{
	uint8_t *bytes = malloc(entry->raw_size + 1);
	int r;

	if (!bytes)
		return -ENOMEM;
	r = payload_unpack(entry, bytes, limiter);
	if (r) {
		free(bytes);
		return r;
	}
	bytes[entry->raw_size] = '\0';
	*bytes_p = bytes;
	*size_p = entry->raw_size;
	return 0;
}

int
gp_fatbin_extract_limited(const struct gp_fatbin_entry *entry, size_t limit,
			  struct gp_unpack_limiter *limiter, void **bytes_p, size_t *size_p)
{
	int r;

	/* LZ4 takes the lengths as int. */
	if (entry->raw_size > limit || entry->raw_size > INT32_MAX ||
	    entry->stored_size > INT32_MAX)
		return -EFBIG;
	r = limiter ? limiter->enter(limiter, entry->raw_size) : 0;
	if (r)
		return r;
	r = payload_extract(entry, limiter, bytes_p, size_p);
	if (r && limiter)
		limiter->leave(limiter, entry->raw_size);
	return r;
}

void
gp_fatbin_release(struct gp_unpack_limiter *limiter, void *bytes, size_t size)
{
	free(bytes);
	if (limiter)
		limiter->leave(limiter, size);
}

int
gp_fatbin_extract(const struct gp_fatbin_entry *entry, size_t limit, void **bytes_p, size_t *size_p)
{
	return gp_fatbin_extract_limited(entry, limit, NULL, bytes_p, size_p);
}

/* Whether the target can use an entry compiled for entry->sm. */
static bool
entry_fits_arch(const struct gp_fatbin_entry *entry, const struct gp_image_target *target,
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
	return target->software ? entry->kind == GP_FATBIN_PTX
				: entry_fits_arch(entry, target, entry->kind == GP_FATBIN_PTX);
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

/* The software device prefers the version with the fewest special instructions, a GPU the closest
 * one. */
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

/* For PTX: retains all entries of the best version, and for a GPU the suitable arch-specific
 * ones. */
static bool
entry_is_kept(const struct gp_fatbin_entry *entry, const struct gp_fatbin_entry *best,
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
entry_append(uint8_t *out, const struct gp_fatbin_entry *entry)
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
		if (entry_is_kept(&entry, &best, target))
			end = entry_append(end, &entry);
		if (!smallest.start || entry.size < smallest.size)
			smallest = entry;
	}
	if (r != GP_IMAGE_E_END)
		return r;
	*usable_p = end > start;
	if (end == start && smallest.start)
		end = entry_append(end, &smallest);
	body = (uint64_t)(end - start);
	memcpy(out, fatbin.data, FATBIN_HEADER_SIZE);
	memcpy(out + 8, &body, sizeof(body));
	*size_p = FATBIN_HEADER_SIZE + body;
	return 0;
}
