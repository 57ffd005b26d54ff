/* SPDX-License-Identifier: Apache-2.0 */
/* Headers as fatbinary wrote them from CUDA 8 to 13, and the same with one number changed. */
#include "image/fatbin_entry.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD 16u

/* What stands behind the fixed 64 bytes, and where it says that it is. */
struct form {
	const char *from;
	uint16_t kind;
	uint32_t size;
	uint32_t options;
	uint32_t name, name_length;
	uint64_t flags;
	uint32_t compressed, raw;
	char behind[48];
};

enum form_name {
	PTX_8,
	PTX_8_NAMED,
	PTX_12,
	PTX_12_NAMED,
	PTX_13,
	ELF_8_NAMED,
	ELF_13,
	ELF_13_ATTRIBUTES,
	ELF_13_4_ATTRIBUTES,
	ELF_12_ATTRIBUTES,
	LTO_12,
	FORMS,
};

static const struct form forms[FORMS] = {
	[PTX_8] = { "8.0", 1, 72, 64, 0, 0, 0x2015, 9, 40, "" },
	[PTX_8_NAMED] = { "8.0", 1, 96, 64, 80, 7, 0x2015, 9, 40,
			  "\x48\0\0\0\x06\0\0\0-v -O3\0zinit.cu" },
	[PTX_12] = { "12.4", 1, 88, 72, 0, 0, 0x11, 0, 0, "\0\0\0\0\0\0\0\0\x50" },
	[PTX_12_NAMED] = { "12.4", 1, 104, 72, 64, 4, 0x2011, 9, 40,
			   "k.cu\0\0\0\0\x50\0\0\0\x15\0\0\0--generate-line-info " },
	[PTX_13] = { "13.0", 1, 80, 64, 0, 0, 0x8011, 9, 40, "\x48" },
	[ELF_8_NAMED] = { "8.0", 2, 72, 0, 64, 7, 0x2015, 9, 40, "init.cu" },
	[ELF_13] = { "13.0", 2, 64, 0, 0, 0, 0x11, 0, 0, "" },
	[ELF_13_ATTRIBUTES] = { "13.0", 2, 96, 64, 0, 0, 0x1000011, 0, 0,
				"\x48\0\0\0\x10\0\0\0\0\2\t\0\0\4\x0b\x08\0\1" },
	/* Their last byte is no zero. */
	[ELF_13_4_ATTRIBUTES] = { "13.4", 2, 88, 64, 0, 0, 0x1000011, 0, 0,
				  "\x48\0\0\0\x08\0\0\0\0\2\t\0\0\3\x0e\0\4" },
	[ELF_12_ATTRIBUTES] = { "12.8", 2, 80, 64, 0, 0, 0x1002011, 9, 40,
				"\x48\0\0\0\x03\0\0\0\1\0\5" },
	[LTO_12] = { "12.4", 8, 104, 72, 0, 0, 0x12011, 9, 40,
		     "\0\0\0\0\0\0\0\0\x50\0\0\0\x10\0\0\0-ftz=0 -fmad=1  " },
};

/* A buffer of the exact size, so that a sanitizer detects reads beyond it. */
static uint8_t *
make(const struct form *form, size_t *size_p)
{
	const uint32_t words[] = { form->kind | 0x0101u << 16,
				   form->size,
				   PAYLOAD,
				   0,
				   form->compressed,
				   form->options,
				   9u << 16,
				   75,
				   form->name,
				   form->name_length };
	const uint64_t longs[] = { form->flags, 0, form->raw };
	uint8_t *bytes = calloc(1, form->size + PAYLOAD);

	assert_non_null(bytes);
	memcpy(bytes, words, sizeof(words));
	memcpy(bytes + 40, longs, sizeof(longs));
	memcpy(bytes + 64, form->behind, form->size - 64);
	*size_p = form->size + PAYLOAD;
	return bytes;
}

UNIT_TEST(what_fatbinary_has_written_is_read)
{
	for (unsigned int i = 0; i < FORMS; i++) {
		struct gp_fatbin_entry entry;
		size_t size;
		uint8_t *bytes = make(&forms[i], &size);

		if (gp_fatbin_entry_parse(bytes, size, &entry))
			fail_msg("form %u, of CUDA %s: %s", i, forms[i].from, gp_image_get_error());
		assert_int_equal(entry.kind, forms[i].kind);
		assert_int_equal(entry.sm, 75);
		assert_int_equal(entry.size, size);
		assert_ptr_equal(entry.payload, bytes + forms[i].size);
		assert_int_equal(entry.stored_size, forms[i].raw ? 9 : PAYLOAD);
		assert_int_equal(entry.raw_size, forms[i].raw ? 40 : PAYLOAD);
		assert_int_equal(entry.name_size, forms[i].name_length);
		if (entry.name_size)
			assert_ptr_equal(entry.name, bytes + forms[i].name);
		free(bytes);
	}
}

UNIT_TEST(a_number_that_leads_elsewhere_is_refused_by_name)
{
	static const struct {
		enum form_name form;
		unsigned int at, bytes;
		uint64_t value;
		const char *says;
	} changes[] = {
		{ PTX_8, 2, 2, 0x0102, "unknown version" },
		{ PTX_8, 4, 4, 0, "invalid header size" },
		{ PTX_8, 4, 4, 56, "invalid header size" },
		{ PTX_8, 4, 4, 76, "invalid header size" },
		{ PTX_8, 4, 4, 0x100, "invalid header size" },
		{ PTX_8, 4, 4, UINT32_MAX, "invalid header size" },
		{ PTX_8, 8, 8, PAYLOAD + 8, "longer than the fatbin" },
		{ PTX_8, 8, 8, PAYLOAD - 1, "longer than the fatbin" },
		{ PTX_8, 8, 8, UINT64_MAX - 7, "longer than the fatbin" },
		{ PTX_8, 16, 4, 0, "code has another size, 0" },
		{ PTX_8, 16, 4, PAYLOAD + 1, "code has another size, 17" },
		{ PTX_8, 56, 8, 0, "code has another size, 0" },
		{ PTX_8, 56, 8, GP_IMAGE_SIZE_MAX + 1, "code has another size" },
		{ PTX_8, 40, 8, 0xa015, "compressed in two ways" },
		{ PTX_12, 56, 8, PAYLOAD + 1, "code has another size, 17" },
		{ PTX_12, 16, 4, PAYLOAD + 1, "code has another size, 17" },
		/* Where the options are. */
		{ PTX_8, 20, 4, 0,
		  "PTX for sm_75 with a header of 72 bytes: the option reference" },
		{ PTX_12, 20, 4, 0, "the option reference is outside of the header, at 0" },
		{ PTX_13, 20, 4, 0, "the option reference is outside of the header, at 0" },
		{ PTX_13, 20, 4, 63, "header, at 63" },
		{ PTX_13, 20, 4, 73, "header, at 73" },
		{ PTX_13, 20, 4, UINT32_MAX, "header, at 4294967295" },
		{ ELF_13, 20, 4, 64, "header, at 64" },
		{ ELF_13_ATTRIBUTES, 20, 4, 8, "header, at 8" },
		{ LTO_12, 20, 4, 97, "header, at 97" },
		/* What they are. */
		{ PTX_8, 64, 4, 16, "its options are outside of the header, at 16" },
		{ PTX_8, 68, 4, 1, "its options are outside of the header, at 0" },
		{ PTX_13, 64, 4, 0x101, "its options are outside of the header, at 257" },
		{ PTX_13, 64, 4, UINT32_MAX, "its options are outside of the header" },
		{ PTX_13, 68, 4, 8, "its options are outside of the header" },
		{ PTX_13, 68, 4, UINT32_MAX, "its options are outside of the header" },
		{ PTX_12_NAMED, 0x50 + 0x15, 1, 'x',
		  "its options are outside of the header, at 80" },
		{ LTO_12, 0x50 + 0x10, 1, 'x', "its options are outside of the header, at 80" },
		{ ELF_13_ATTRIBUTES, 68, 4, 24, "its options are outside of the header, at 72" },
		{ ELF_13_ATTRIBUTES, 68, 4, 15, "attributes are truncated at 87" },
		{ ELF_13_ATTRIBUTES, 68, 4, 17, "attributes are truncated at 89" },
		{ ELF_13_ATTRIBUTES, 73, 1, 5, "attributes are truncated" },
		{ ELF_13_ATTRIBUTES, 79, 2, 9, "attributes are truncated" },
		{ ELF_13_ATTRIBUTES, 79, 2, 0xffff, "attributes are truncated" },
		{ ELF_13_4_ATTRIBUTES, 81, 1, 1, "its options are outside of the header, at 72" },
		{ ELF_13_4_ATTRIBUTES, 68, 4, 7, "its options are outside of the header, at 72" },
		{ ELF_12_ATTRIBUTES, 68, 4, 8, "its options are outside of the header, at 72" },
		/* The name. */
		{ PTX_8_NAMED, 32, 4, 0, "the source name is outside of the header, at 0" },
		{ PTX_8_NAMED, 32, 4, 96, "the source name is outside of the header, at 96" },
		{ PTX_8_NAMED, 36, 4, 16, "the source name is outside of the header, at 80" },
		{ PTX_8_NAMED, 36, 4, UINT32_MAX, "the source name is outside of the header" },
		{ PTX_12_NAMED, 68, 1, 'x', "the source name is outside of the header, at 64" },
		{ ELF_8_NAMED, 71, 1, 'x', "the source name is outside of the header, at 64" },
		{ ELF_13, 32, 4, 64, "the source name is outside of the header, at 64" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct gp_fatbin_entry entry;
		size_t size;
		uint8_t *bytes = make(&forms[changes[i].form], &size);
		int r;

		memcpy(bytes + changes[i].at, &changes[i].value, changes[i].bytes);
		r = gp_fatbin_entry_parse(bytes, size, &entry);
		if (r != -EBADMSG || !strstr(gp_image_get_error(), changes[i].says))
			fail_msg("change %zu of form %u at %u: %d, %s", i, changes[i].form,
				 changes[i].at, r, gp_image_get_error());
		free(bytes);
	}
}

/* Whatever one byte says, nothing is read beyond the bytes, and what is told lies within them. */
UNIT_TEST(every_byte_may_be_anything)
{
	for (unsigned int i = 0; i < FORMS; i++) {
		for (unsigned int at = 0; at < forms[i].size; at++) {
			for (uint64_t value = 0; value < 256; value++) {
				struct gp_fatbin_entry entry;
				size_t size;
				uint8_t *bytes = make(&forms[i], &size);

				bytes[at] = (uint8_t)value;
				if (gp_fatbin_entry_parse(bytes, size, &entry) == 0) {
					assert_in_range(entry.size, 64, size);
					assert_in_range(entry.stored_size, 0, PAYLOAD);
				}
				free(bytes);
			}
		}
	}
}

/* A fatbin within an object, at no multiple of anything. */
UNIT_TEST(fatbins_are_found_in_other_bytes)
{
	static const uint8_t header[] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0 };
	uint64_t body;
	size_t size;
	uint8_t *entry = make(&forms[PTX_13], &size), *bytes = calloc(1, 3 + 2 * (16 + size) + 5);
	uint8_t *second = bytes + 3 + 16 + size;

	assert_non_null(bytes);
	body = size;
	for (uint8_t *at = bytes + 3; at <= second; at += 16 + size) {
		memcpy(at, header, 8);
		memcpy(at + 8, &body, 8);
		memcpy(at + 16, entry, size);
	}
	size = 3 + 2 * (16 + size) + 5;
	assert_int_equal(gp_fatbin_check_embedded(bytes, size, false), 0);
	assert_int_equal(gp_fatbin_check_embedded(bytes, size, true), -EBADMSG);
	assert_string_equal(gp_image_get_error(), "missing fatbin header");
	assert_int_equal(gp_fatbin_check_embedded(bytes + 3, size - 3, true), 0);
	assert_int_equal(gp_fatbin_check_embedded(bytes, size - 6, false), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "truncated"));
	memset(second + 16 + 20, 0, 4);
	assert_int_equal(gp_fatbin_check_embedded(bytes, size, false), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "the option reference"));
	second[0] = 0;
	assert_int_equal(gp_fatbin_check_embedded(bytes, size, false), 0);
	free(bytes);
	free(entry);
}

UNIT_TEST_MAIN(NULL, NULL)
