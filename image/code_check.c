/* SPDX-License-Identifier: Apache-2.0 */
#include "image/code_check.h"

#include "image/elf_check.h"
#include "image/fatbin_entry.h"

#include <ar.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* *left: bytes that may still be decompressed, because a few bytes can expand to very many. */
static int
check_entry(const struct gp_fatbin_entry *entry, struct gp_unpack_limiter *limiter, uint64_t *left)
{
	void *bytes;
	size_t size;
	int r;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD)))
		return entry->kind == GP_FATBIN_ELF
			       ? gp_elf_check(entry->payload, entry->stored_size)
			       : 0;
	if (entry->kind != GP_FATBIN_ELF)
		return 0;
	r = gp_fatbin_extract_limited(entry, *left, limiter, &bytes, &size);
	if (r == -EFBIG)
		return gp_image_set_error("unpacked code exceeds %llu bytes",
					  (unsigned long long)GP_IMAGE_SIZE_MAX);
	if (r == -EBADMSG)
		return gp_image_set_error("its compressed code cannot be unpacked");
	if (r == -ENOEXEC)
		return gp_image_set_error("its compressed code is not an ELF for a GPU");
	if (r)
		return r;
	*left -= size;
	r = gp_elf_check(bytes, size);
	gp_fatbin_release(limiter, bytes, size);
	return r;
}

static int
check_fatbin(const void *bytes, size_t size, struct gp_unpack_limiter *limiter, uint64_t *left)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	int r = gp_fatbin_walk(&walk, bytes, size);

	while (!r) {
		r = gp_fatbin_next(&walk, &entry);
		if (!r)
			r = check_entry(&entry, limiter, left);
	}
	return r == GP_IMAGE_E_END ? 0 : r;
}

int
gp_image_check_code(const struct gp_image *image, struct gp_unpack_limiter *limiter)
{
	enum gp_image_kind kind = gp_image_type(image);
	uint64_t left = GP_IMAGE_SIZE_MAX;
	int r = 0;

	for (unsigned int i = 0; !r && i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);

		if (kind == GP_IMAGE_ELF)
			r = gp_elf_check(blob.data, blob.size);
		else if (kind != GP_IMAGE_PTX)
			r = check_fatbin(blob.data, blob.size, limiter, &left);
	}
	return r;
}

/* Returns the bytes that the driver allocates for the entry. */
static uint64_t
get_entry_size(const struct gp_fatbin_entry *entry, const struct gp_image_target *target)
{
	if (entry->kind == GP_FATBIN_ELF && !gp_fatbin_usable(entry, target))
		return 0;
	if (entry->kind != GP_FATBIN_PTX && !(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD)))
		return 0;
	return entry->raw_size;
}

/* The driver uses a single entry of a fatbin. */
static uint64_t
get_fatbin_size(const void *bytes, size_t size, const struct gp_image_target *target)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	uint64_t most = 0;
	int r = gp_fatbin_walk(&walk, bytes, size);

	while (!r && !(r = gp_fatbin_next(&walk, &entry))) {
		const uint64_t size_of_entry = get_entry_size(&entry, target);

		most = size_of_entry > most ? size_of_entry : most;
	}
	return most;
}

uint64_t
gp_image_driver_size(const struct gp_image *image, const struct gp_image_target *target)
{
	const enum gp_image_kind kind = gp_image_type(image);
	uint64_t sum = 0;

	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		const struct gp_image_blob blob = gp_image_blob(image, i);

		if (kind == GP_IMAGE_PTX)
			sum += blob.size;
		else if (kind != GP_IMAGE_ELF)
			sum += get_fatbin_size(blob.data, blob.size, target);
	}
	return sum;
}

static bool
is_cubin(const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       header.e_machine == GP_ELF_MACHINE_CUDA;
}

/* Archive members begin at even offsets. */
static int
check_members(const uint8_t *bytes, size_t size)
{
	size_t at = SARMAG;
	int r = 0;

	while (!r && at < size) {
		struct ar_hdr header;
		char digits[sizeof(header.ar_size) + 1] = "";
		unsigned long long length;

		if (size - at < sizeof(header))
			return gp_image_set_error("truncated library member header");
		memcpy(&header, bytes + at, sizeof(header));
		at += sizeof(header);
		memcpy(digits, header.ar_size, sizeof(header.ar_size));
		if (memcmp(header.ar_fmag, ARFMAG, sizeof(header.ar_fmag)) != 0 ||
		    sscanf(digits, "%10llu", &length) != 1 || length > size - at)
			return gp_image_set_error("truncated library member");
		if (is_cubin(bytes + at, length))
			r = gp_elf_check(bytes + at, length);
		at += length + length % 2;
	}
	return r;
}

static const uint8_t fatbin_magic[] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 };

/* Returns the next fatbin between `at` and `end`, whose headers have been validated; NULL: none. */
static const uint8_t *
find_fatbin(const uint8_t *at, const uint8_t *end, size_t *size_p)
{
	uint64_t body;

	at = memmem(at, (size_t)(end - at), fatbin_magic, sizeof(fatbin_magic));
	if (!at)
		return NULL;
	memcpy(&body, at + 8, sizeof(body));
	*size_p = 16 + body;
	return at;
}

uint64_t
gp_code_driver_size(const void *bytes, size_t size, const struct gp_image_target *target)
{
	const uint8_t *at = bytes, *end = at + size;
	uint64_t sum = 0;

	while ((at = find_fatbin(at, end, &size))) {
		sum += get_fatbin_size(at, size, target);
		at += size;
	}
	return sum;
}

int
gp_code_check_embedded(const void *bytes, size_t size, bool must_be_cubin,
		       struct gp_unpack_limiter *limiter)
{
	const uint8_t *at = bytes, *end = at + size;
	uint64_t left = GP_IMAGE_SIZE_MAX;
	int r = 0;

	if (must_be_cubin || is_cubin(bytes, size))
		return gp_elf_check(bytes, size);
	if (size >= SARMAG && memcmp(bytes, ARMAG, SARMAG) == 0)
		r = check_members(bytes, size);
	while (!r && (at = find_fatbin(at, end, &size))) {
		r = check_fatbin(at, size, limiter, &left);
		at += size;
	}
	return r;
}
