/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind the fixed part of a header stand, in any order, the name of the source file and the
 * options: a place and a length that say where these are.  Of PTX the options are ptxas's, of an
 * ELF attributes: a byte that says of which form they are, and a list that is laid out as a
 * cubin's .nv.info (image_params_elf.c).  A NUL is behind each of them.
 */
#include "image/fatbin_entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERSION 0x0101u
#define ATTRIBUTE_SIZE 4u
#define ATTRIBUTE_STORED_BEHIND 4u

struct header {
	uint16_t kind;
	uint16_t version;
	uint32_t size;
	uint64_t payload_size;
	uint32_t compressed_size;
	uint32_t options; /* where struct place is; 0: none */
	uint16_t minor;
	uint16_t major;
	uint32_t sm;
	struct place {
		uint32_t offset;
		uint32_t length;
	} name;
	uint64_t flags;
	uint64_t hash; /* of LTO-IR */
	uint64_t raw_size;
};

_Static_assert(sizeof(struct header) == 64, "as it stands in files");

static _Thread_local char wrong[160];

const char *
gp_image_wrong(void)
{
	return wrong;
}

int
gp_image_set_wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(wrong, sizeof(wrong), format, args);
	va_end(args);
	return -EBADMSG;
}

static const char *
kind_name(unsigned int kind)
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
refuse(const struct header *header, const char *what, uint64_t value)
{
	return gp_image_set_wrong("an entry of a fatbin, %s for sm_%u with a header of %u bytes: "
				  "%s %llu",
				  kind_name(header->kind), header->sm, header->size, what,
				  (unsigned long long)value);
}

/* Behind the fixed part, with its NUL. */
static bool
lies_within(const uint8_t *bytes, const struct header *header, struct place place)
{
	return place.offset >= sizeof(*header) && place.offset < header->size &&
	       place.length < header->size - place.offset &&
	       bytes[place.offset + place.length] == '\0';
}

static bool
is_nowhere(struct place place)
{
	return place.offset == 0 && place.length == 0;
}

static int
read_name(const uint8_t *bytes, const struct header *header, struct gp_fatbin_entry *entry)
{
	if (is_nowhere(header->name))
		return 0;
	if (!lies_within(bytes, header, header->name))
		return refuse(header, "the name of its source is not in there, but at",
			      header->name.offset);
	if (header->name.length == 0)
		return 0;
	entry->name = (const char *)bytes + header->name.offset;
	entry->name_size = header->name.length;
	return 0;
}

/* Another form than 0 is known of one length only, and not how to read it. */
static bool
are_attributes(const uint8_t *bytes, size_t size)
{
	size_t at = 1;

	if (bytes[0] != 0)
		return true;
	while (at < size) {
		size_t behind;

		if (size - at < ATTRIBUTE_SIZE || bytes[at] < 1 ||
		    bytes[at] > ATTRIBUTE_STORED_BEHIND)
			return false;
		behind = bytes[at] == ATTRIBUTE_STORED_BEHIND ? bytes[at + 2] | bytes[at + 3] << 8
							      : 0;
		at += ATTRIBUTE_SIZE;
		if (behind > size - at)
			return false;
		at += behind;
	}
	return true;
}

/* A list of attributes, of whose length the byte before it is no part. */
static bool
is_list(const uint8_t *bytes, const struct header *header, struct place place)
{
	return place.offset >= sizeof(*header) && place.offset < header->size &&
	       place.length < header->size && bytes[place.offset] == 0;
}

static int
check_options(const uint8_t *bytes, const struct header *header)
{
	struct place place, all;

	if (header->options == 0 && header->kind != GP_FATBIN_PTX)
		return 0;
	if (header->options < sizeof(*header) || header->options > header->size - sizeof(place))
		return refuse(header, "where its options are is not said in there, but at",
			      header->options);
	memcpy(&place, bytes + header->options, sizeof(place));
	if (is_nowhere(place))
		return 0;
	all = place;
	if (header->kind == GP_FATBIN_ELF && is_list(bytes, header, place))
		all.length++;
	if (!lies_within(bytes, header, all))
		return refuse(header, "its options are not in there, but at", place.offset);
	if (header->kind == GP_FATBIN_ELF &&
	    !are_attributes(bytes + place.offset, (size_t)place.length + 1))
		return refuse(header, "its attributes do not end where they should, at",
			      place.offset + place.length);
	return 0;
}

static int
read_sizes(const struct header *header, struct gp_fatbin_entry *entry)
{
	uint64_t packed = header->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD);
	uint64_t raw_max = packed ? GP_IMAGE_SIZE_MAX : header->payload_size;

	if (packed == (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))
		return refuse(header, "it is compressed in two ways, flags", header->flags);
	if (header->compressed_size > header->payload_size ||
	    (packed && header->compressed_size == 0))
		return refuse(header, "its compressed code has not the size that it says,",
			      header->compressed_size);
	if (header->raw_size > raw_max || (packed && header->raw_size == 0))
		return refuse(header, "its code has not the size that it says,", header->raw_size);
	entry->stored_size = packed ? header->compressed_size : header->payload_size;
	entry->raw_size = packed ? header->raw_size : header->payload_size;
	return 0;
}

static int
check_extent(const struct header *header, size_t left)
{
	if (header->version != VERSION)
		return refuse(header, "it is of an unknown version,", header->version);
	if (header->size < sizeof(*header) || header->size % 8 || header->size > left)
		return refuse(header, "that size cannot be; bytes left:", left);
	if (header->payload_size % 8 || header->payload_size > left - header->size)
		return refuse(header, "its code is longer than the fatbin, with",
			      header->payload_size);
	return 0;
}

int
gp_fatbin_entry_read(const uint8_t *bytes, size_t left, struct gp_fatbin_entry *entry_p)
{
	struct gp_fatbin_entry entry = { .start = bytes };
	struct header header;
	int r;

	if (left < sizeof(header))
		return gp_image_set_wrong("%zu bytes behind a fatbin's last entry", left);
	memcpy(&header, bytes, sizeof(header));
	r = check_extent(&header, left);
	if (!r)
		r = read_name(bytes, &header, &entry);
	if (!r)
		r = check_options(bytes, &header);
	if (!r)
		r = read_sizes(&header, &entry);
	if (r)
		return r;
	entry.kind = header.kind;
	entry.sm = header.sm;
	entry.flags = header.flags;
	entry.payload = bytes + header.size;
	entry.size = header.size + header.payload_size;
	*entry_p = entry;
	return 0;
}
