/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixed part of a header is followed, in any order, by the name of the source file and the
 * options; an offset and a length locate each. For PTX the options are those of ptxas; for an ELF
 * they are attributes: a byte with their form, and a list in the layout of a cubin's .nv.info
 * (image_params_elf.c). Each is followed by a NUL.
 */
#include "image/fatbin_entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION 0x0101u
#define ATTRIBUTE_SIZE 4u
#define ATTRIBUTE_SIZED 4u

struct entry_header {
	uint16_t kind;
	uint16_t version;
	uint32_t size;
	uint64_t payload_size;
	uint32_t compressed_size;
	uint32_t options; /* offset of a struct extent; 0: none */
	uint16_t minor;
	uint16_t major;
	uint32_t sm;
	struct extent {
		uint32_t offset;
		uint32_t length;
	} name;
	uint64_t flags;
	uint64_t hash; /* of LTO-IR */
	uint64_t raw_size;
};

_Static_assert(sizeof(struct entry_header) == 64, "as in files");

static _Thread_local char error_text[160];

const char *
gp_image_get_error(void)
{
	return error_text;
}

int
gp_image_set_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error_text, sizeof(error_text), format, args);
	va_end(args);
	return -EBADMSG;
}

static const char *
kind_get_name(unsigned int kind)
{
	switch (kind) {
	case GP_FATBIN_PTX:
		return "PTX";
	case GP_FATBIN_ELF:
		return "ELF";
	case GP_FATBIN_LTO_IR:
		return "LTO-IR";
	default:
		return "unknown code";
	}
}

static int
entry_refuse(const struct entry_header *entry_header, const char *what, uint64_t value)
{
	return gp_image_set_error("an entry of a fatbin, %s for sm_%u with a header of %u bytes: "
				  "%s %llu",
				  kind_get_name(entry_header->kind), entry_header->sm,
				  entry_header->size, what, (unsigned long long)value);
}

/* Whether the extent is after the fixed part, and followed by a NUL. */
static bool
extent_is_valid(const uint8_t *bytes, const struct entry_header *entry_header, struct extent extent)
{
	return extent.offset >= sizeof(*entry_header) && extent.offset < entry_header->size &&
	       extent.length < entry_header->size - extent.offset &&
	       bytes[extent.offset + extent.length] == '\0';
}

static bool
extent_is_empty(struct extent extent)
{
	return extent.offset == 0 && extent.length == 0;
}

static int
name_parse(const uint8_t *bytes, const struct entry_header *entry_header,
	   struct gp_fatbin_entry *entry)
{
	if (extent_is_empty(entry_header->name))
		return 0;
	if (!extent_is_valid(bytes, entry_header, entry_header->name))
		return entry_refuse(entry_header, "the source name is outside of the header, at",
				    entry_header->name.offset);
	if (entry_header->name.length == 0)
		return 0;
	entry->name = (const char *)bytes + entry_header->name.offset;
	entry->name_size = entry_header->name.length;
	return 0;
}

/* Forms other than 0 are accepted unread, because only their length is known. */
static bool
attributes_are_valid(const uint8_t *bytes, size_t size)
{
	size_t at = 1;

	if (bytes[0] != 0)
		return true;
	while (at < size) {
		size_t behind;

		if (size - at < ATTRIBUTE_SIZE || bytes[at] < 1 || bytes[at] > ATTRIBUTE_SIZED)
			return false;
		behind = bytes[at] == ATTRIBUTE_SIZED ? bytes[at + 2] | bytes[at + 3] << 8 : 0;
		at += ATTRIBUTE_SIZE;
		if (behind > size - at)
			return false;
		at += behind;
	}
	return true;
}

/* A list of attributes; its length excludes the form byte before it. */
static bool
extent_is_attributes(const uint8_t *bytes, const struct entry_header *entry_header,
		     struct extent extent)
{
	return extent.offset >= sizeof(*entry_header) && extent.offset < entry_header->size &&
	       extent.length < entry_header->size && bytes[extent.offset] == 0;
}

static int
options_check(const uint8_t *bytes, const struct entry_header *entry_header)
{
	struct extent extent, all;

	if (entry_header->options == 0 && entry_header->kind != GP_FATBIN_PTX)
		return 0;
	if (entry_header->options < sizeof(*entry_header) ||
	    entry_header->options > entry_header->size - sizeof(extent))
		return entry_refuse(entry_header,
				    "the option reference is outside of the header, at",
				    entry_header->options);
	memcpy(&extent, bytes + entry_header->options, sizeof(extent));
	if (extent_is_empty(extent))
		return 0;
	all = extent;
	if (entry_header->kind == GP_FATBIN_ELF &&
	    extent_is_attributes(bytes, entry_header, extent))
		all.length++;
	if (!extent_is_valid(bytes, entry_header, all))
		return entry_refuse(entry_header, "its options are outside of the header, at",
				    extent.offset);
	if (entry_header->kind == GP_FATBIN_ELF &&
	    !attributes_are_valid(bytes + extent.offset, (size_t)extent.length + 1))
		return entry_refuse(entry_header, "its attributes are truncated at",
				    extent.offset + extent.length);
	return 0;
}

static int
sizes_parse(const struct entry_header *entry_header, struct gp_fatbin_entry *entry)
{
	uint64_t packed = entry_header->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD);
	uint64_t raw_max = packed ? GP_IMAGE_SIZE_MAX : entry_header->payload_size;

	if (packed == (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))
		return entry_refuse(entry_header, "compressed in two ways, flags",
				    entry_header->flags);
	if (entry_header->compressed_size > entry_header->payload_size ||
	    (packed && entry_header->compressed_size == 0))
		return entry_refuse(entry_header, "its compressed code has another size,",
				    entry_header->compressed_size);
	if (entry_header->raw_size > raw_max || (packed && entry_header->raw_size == 0))
		return entry_refuse(entry_header, "its code has another size,",
				    entry_header->raw_size);
	entry->stored_size = packed ? entry_header->compressed_size : entry_header->payload_size;
	entry->raw_size = packed ? entry_header->raw_size : entry_header->payload_size;
	return 0;
}

static int
header_check(const struct entry_header *entry_header, size_t left)
{
	if (entry_header->version != VERSION)
		return entry_refuse(entry_header, "unknown version", entry_header->version);
	if (entry_header->size < sizeof(*entry_header) || entry_header->size % 8 ||
	    entry_header->size > left)
		return entry_refuse(entry_header, "invalid header size; bytes left:", left);
	if (entry_header->payload_size % 8 ||
	    entry_header->payload_size > left - entry_header->size)
		return entry_refuse(entry_header, "its code is longer than the fatbin, size",
				    entry_header->payload_size);
	return 0;
}

int
gp_fatbin_entry_parse(const uint8_t *bytes, size_t left, struct gp_fatbin_entry *entry_p)
{
	struct gp_fatbin_entry entry = { .start = bytes };
	struct entry_header entry_header;
	int r;

	if (left < sizeof(entry_header))
		return gp_image_set_error("%zu bytes after a fatbin's last entry", left);
	memcpy(&entry_header, bytes, sizeof(entry_header));
	r = header_check(&entry_header, left);
	if (!r)
		r = name_parse(bytes, &entry_header, &entry);
	if (!r)
		r = options_check(bytes, &entry_header);
	if (!r)
		r = sizes_parse(&entry_header, &entry);
	if (r)
		return r;
	entry.kind = entry_header.kind;
	entry.sm = entry_header.sm;
	entry.flags = entry_header.flags;
	entry.payload = bytes + entry_header.size;
	entry.size = entry_header.size + entry_header.payload_size;
	*entry_p = entry;
	return 0;
}
