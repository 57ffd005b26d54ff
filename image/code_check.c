/* SPDX-License-Identifier: Apache-2.0 */
#include "image/code_check.h"

#include "image/elf_check.h"
#include "image/fatbin_entry.h"

#include <ar.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* *left: how many bytes may still be unpacked; few bytes may stand for very many. */
static int
check_entry(const struct gp_fatbin_entry *entry, struct gp_unpack_gate *gate, uint64_t *left)
{
	void *bytes;
	size_t size;
	int r;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD)))
		return entry->kind == GP_FATBIN_ELF
			       ? gp_elf_check(entry->payload, entry->stored_size)
			       : 0;
	if (entry->kind != GP_FATBIN_ELF) {
		r = gate ? gate->enter(gate, entry->raw_size) : 0;
		if (!r && gate)
			gate->leave(gate, entry->raw_size);
		return r;
	}
	r = gp_fatbin_extract_gated(entry, *left, gate, &bytes, &size);
	if (r == -EFBIG)
		return gp_image_set_wrong("its code has more than %llu bytes once unpacked",
					  (unsigned long long)GP_IMAGE_SIZE_MAX);
	if (r == -EBADMSG)
		return gp_image_set_wrong("its compressed code cannot be unpacked");
	if (r == -ENOEXEC)
		return gp_image_set_wrong("its compressed code is not an ELF for a GPU");
	if (r)
		return r;
	*left -= size;
	r = gp_elf_check(bytes, size);
	gp_fatbin_release(gate, bytes, size);
	return r;
}

static int
check_fatbin(const void *bytes, size_t size, struct gp_unpack_gate *gate, uint64_t *left)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	int r = gp_fatbin_walk(&walk, bytes, size);

	while (!r) {
		r = gp_fatbin_next(&walk, &entry);
		if (!r)
			r = check_entry(&entry, gate, left);
	}
	return r == GP_IMAGE_E_END ? 0 : r;
}

int
gp_image_check_code(const struct gp_image *image, struct gp_unpack_gate *gate)
{
	enum gp_image_kind kind = gp_image_type(image);
	uint64_t left = GP_IMAGE_SIZE_MAX;
	int r = 0;

	for (unsigned int i = 0; !r && i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);

		if (kind == GP_IMAGE_ELF)
			r = gp_elf_check(blob.data, blob.size);
		else if (kind != GP_IMAGE_PTX)
			r = check_fatbin(blob.data, blob.size, gate, &left);
	}
	return r;
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

/* Members begin at even places. */
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
			return gp_image_set_wrong("a library ends within a member's header");
		memcpy(&header, bytes + at, sizeof(header));
		at += sizeof(header);
		memcpy(digits, header.ar_size, sizeof(header.ar_size));
		if (memcmp(header.ar_fmag, ARFMAG, sizeof(header.ar_fmag)) != 0 ||
		    sscanf(digits, "%10llu", &length) != 1 || length > size - at)
			return gp_image_set_wrong("a library's member is cut off");
		if (is_cubin(bytes + at, length))
			r = gp_elf_check(bytes + at, length);
		at += length + length % 2;
	}
	return r;
}

int
gp_code_check_within(const void *bytes, size_t size, bool must_be_cubin,
		     struct gp_unpack_gate *gate)
{
	static const uint8_t begin[] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 };
	const uint8_t *at = bytes, *end = at + size;
	uint64_t left = GP_IMAGE_SIZE_MAX;
	int r = 0;

	if (must_be_cubin || is_cubin(bytes, size))
		return gp_elf_check(bytes, size);
	if (size >= SARMAG && memcmp(bytes, ARMAG, SARMAG) == 0)
		r = check_members(bytes, size);
	while (!r && (at = memmem(at, (size_t)(end - at), begin, sizeof(begin)))) {
		uint64_t body;

		memcpy(&body, at + 8, sizeof(body));
		r = check_fatbin(at, 16 + body, gate, &left);
		at += 16 + body;
	}
	return r;
}
