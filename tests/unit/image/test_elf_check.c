/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc writes passes; with one number of it changed it is refused by name, or harmless. */
#include "image/code_check.h"
#include "image/elf_check.h"
#include "tests/test.h"
#include "tests/unit/image/fatbin_file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define HEADER(field) NULL, offsetof(Elf64_Ehdr, field), sizeof(((Elf64_Ehdr *)0)->field)
#define SECTION(name, field) name, offsetof(Elf64_Shdr, field), sizeof(((Elf64_Shdr *)0)->field)

struct cubin {
	uint8_t *bytes;
	size_t size;
};

static size_t
size_of(const char *name)
{
	char path[4096];
	FILE *file;
	long size;

	snprintf(path, sizeof(path), "%s/%s", getenv("GP_TEST_FATBINS"), name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	fclose(file);
	return (size_t)size;
}

/* Of the very size, so that a sanitizer sees what is read beyond it. */
static struct cubin
read_cubin(const char *name)
{
	struct cubin cubin = { .size = size_of(name) };
	char *bytes = read_fatbin_file(name);

	cubin.bytes = malloc(cubin.size);
	assert_non_null(cubin.bytes);
	memcpy(cubin.bytes, bytes, cubin.size);
	free(bytes);
	return cubin;
}

/* Where the header of a section is. */
static size_t
find_section(const struct cubin *cubin, const char *name)
{
	struct gp_elf elf;

	assert_true(gp_elf_open(&elf, cubin->bytes, cubin->size));
	for (uint64_t i = 0; i < elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_section(&elf, i);

		if (strcmp(gp_elf_section_name(&elf, &section), name) == 0)
			return elf.sections + i * sizeof(section);
	}
	fail_msg("no section %s", name);
	return 0;
}

/* Where its bytes are. */
static size_t
find_bytes(const struct cubin *cubin, const char *name)
{
	Elf64_Shdr section;

	memcpy(&section, cubin->bytes + find_section(cubin, name), sizeof(section));
	return section.sh_offset;
}

static void
what_nvcc_has_written_passes(void **state)
{
	static const char *const names[] = {
		"sm_90.cubin",
		"params_sm_80.cubin",
		"params_sm_90.cubin",
		"variables_sm_80.cubin",
		"variables_sm_90.cubin",
		"params_sm_90_debug.cubin",
		"variables_sm_90_debug.cubin",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct cubin cubin = read_cubin(names[i]);
		size_t exact;

		assert_int_equal(gp_image_size(cubin.bytes, &exact), 0);
		assert_int_equal(exact, cubin.size);
		if (gp_elf_check(cubin.bytes, cubin.size))
			fail_msg("%s: %s", names[i], gp_image_wrong());
		if (gp_code_check_within(cubin.bytes, cubin.size, true))
			fail_msg("%s, to be linked: %s", names[i], gp_image_wrong());
		free(cubin.bytes);
	}
}

/* Compressed or not, and of a relocatable object. */
static void
fatbins_pass(void **state)
{
	static const char *const names[] = {
		"balance.fatbin",        "size.fatbin",
		"speed.fatbin",          "none.fatbin",
		"debug.fatbin",          "gencodes.fatbin",
		"params_balance.fatbin", "params_relocatable.fatbin",
		"params_lto.fatbin",     "variables_none.fatbin",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *bytes = read_fatbin_file(names[i]);
		struct gp_image *image;

		assert_int_equal(gp_image_create(bytes, &image), 0);
		if (gp_image_check_code(image))
			fail_msg("%s: %s", names[i], gp_image_wrong());
		if (gp_code_check_within(bytes, size_of(names[i]), false))
			fail_msg("%s, to be linked: %s", names[i], gp_image_wrong());
		gp_image_destroy(image);
		free(bytes);
	}
}

static void
a_number_that_leads_elsewhere_is_refused_by_name(void **state)
{
	static const struct {
		const char *section; /* NULL: the header */
		size_t at, bytes;
		uint64_t value;
		const char *says;
	} changes[] = {
		{ HEADER(e_machine), 62, "another machine, 62" },
		{ HEADER(e_ehsize), 0, "headers have not their sizes" },
		{ HEADER(e_shentsize), 63, "headers have not their sizes, but 63" },
		{ HEADER(e_shoff), UINT64_MAX, "its table of sections is not in there" },
		{ HEADER(e_shnum), 0, "its table of sections is not in there" },
		{ HEADER(e_shnum), 0xfeff, "its table of sections is not in there" },
		{ HEADER(e_shstrndx), 0xfe00, "its table of sections is not in there" },
		{ HEADER(e_shstrndx), 3, "the names of its sections are not in section 3" },
		{ HEADER(e_phnum), 9, "its program headers are not in there" },
		{ SECTION(".shstrtab", sh_offset), UINT64_MAX, "table of sections is not in" },
		{ SECTION(".shstrtab", sh_size), 0, "names of its sections have no end, with 0" },
		{ SECTION(".shstrtab", sh_size), 9, "names of its sections have no end, with 9" },
		{ SECTION(".strtab", sh_offset), 1, "a table of strings has no end" },
		{ SECTION(".strtab", sh_size), UINT32_MAX, "it is longer than the file" },
		{ SECTION(".symtab", sh_entsize), 0, "a table of symbols has not the size" },
		{ SECTION(".symtab", sh_entsize), 8, "a table of symbols has not the size" },
		{ SECTION(".symtab", sh_link), 0, "names of symbols are not in section 0" },
		{ SECTION(".symtab", sh_link), UINT32_MAX, "belongs to no section" },
		{ SECTION(".symtab", sh_info), 999, "it has not so many symbols, 999" },
		{ SECTION(".symtab", sh_type), 0, "its type is not that of its name, but 0" },
		{ SECTION(".text.use", sh_offset), UINT64_MAX, "it is not in the file" },
		{ SECTION(".text.use", sh_offset), 64, "it is where another one is" },
		{ SECTION(".text.use", sh_size), UINT64_MAX - 7, "it is longer than the file" },
		{ SECTION(".text.use", sh_size), 8, "it is too short for symbol" },
		{ SECTION(".text.use", sh_name), UINT32_MAX, "its name is not among those" },
		{ SECTION(".text.use", sh_info), 0xffffff, "its symbol is not there" },
		{ SECTION(".text.use", sh_link), UINT32_MAX, "belongs to no section" },
		{ SECTION(".text.use", sh_addralign), 3, "it cannot be aligned to 3" },
		{ SECTION(".text.use", sh_entsize), 7, "its bytes are no multiple of 7" },
		{ SECTION(".nv.info.use", sh_size), 7, "attribute" },
		{ SECTION(".nv.info.use", sh_link), UINT32_MAX, "belongs to no section" },
		{ SECTION(".nv.info.use", sh_info), UINT32_MAX, "its code is in no section" },
		{ SECTION(".nv.info.use", sh_type), 1, "its type is not that of its name" },
		{ SECTION(".nv.callgraph", sh_link), UINT32_MAX, "belongs to no section" },
		{ SECTION(".nv.constant0.use", sh_size), 8, "parameters have no place" },
		{ SECTION(".nv.constant0.use", sh_info), 999, "its code is in no section" },
		{ SECTION(".nv.global", sh_size), UINT64_C(1) << 32, "it is too large" },
		{ SECTION(".rela.nv.constant4", sh_info), 0, "it relocates no section, but 0" },
		{ SECTION(".rela.nv.constant4", sh_info), UINT32_MAX, "it relocates no section" },
		{ SECTION(".rela.nv.constant4", sh_link), UINT32_MAX, "belongs to no section" },
		{ SECTION(".nv.constant4", sh_size), 8, "it is too far in relocation" },
		{ SECTION(".note.nv.cuinfo", sh_size), 8, "a note is cut off" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cubin cubin = read_cubin("variables_sm_90.cubin");
		size_t at = changes[i].section ? find_section(&cubin, changes[i].section) : 0;
		int r;

		memcpy(cubin.bytes + at + changes[i].at, &changes[i].value, changes[i].bytes);
		r = gp_elf_check(cubin.bytes, cubin.size);
		if (r != -EBADMSG || !strstr(gp_image_wrong(), changes[i].says))
			fail_msg("change %zu, of %s at %zu: %d, %s", i,
				 changes[i].section ? changes[i].section : "the header",
				 changes[i].at, r, gp_image_wrong());
		free(cubin.bytes);
	}
}

/* The kernels that cuBLASLt has for Hopper name no symbol in sh_info. */
static void
what_leads_nowhere_else_passes(void **state)
{
	static const struct {
		const char *section;
		size_t at, bytes;
		uint64_t value;
	} changes[] = {
		{ SECTION(".text.use", sh_info), 0 },
		{ SECTION(".text.use", sh_info), UINT64_C(168) << 24 },
		{ SECTION(".text.use", sh_name), 0 },
		{ SECTION(".nv.info.use", sh_info), 0 },
		{ SECTION(".nv.info.use", sh_name), 0 },
		{ SECTION(".nv.callgraph", sh_entsize), 4 },
		{ SECTION(".nv.constant0.use", sh_info), 0 },
		{ SECTION(".nv.global", sh_link), 1 },
		{ SECTION(".nv.global", sh_info), 1 },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cubin cubin = read_cubin("variables_sm_90.cubin");
		size_t at = find_section(&cubin, changes[i].section) + changes[i].at;

		memcpy(cubin.bytes + at, &changes[i].value, changes[i].bytes);
		if (gp_elf_check(cubin.bytes, cubin.size))
			fail_msg("change %zu, of %s: %s", i, changes[i].section, gp_image_wrong());
		free(cubin.bytes);
	}
}

static void
what_is_in_a_section_is_looked_at(void **state)
{
	static const struct {
		const char *section;
		size_t at, bytes;
		uint64_t value;
		const char *says;
	} changes[] = {
		{ ".symtab", 24, 4, UINT32_MAX, "it has no name for symbol 1" },
		{ ".symtab", 24 + 6, 2, 0xfe00, "it is not there, for symbol 1" },
		{ ".rela.nv.constant4", 0, 8, 1 << 20, "it is too far in relocation 0" },
		{ ".rela.nv.constant4", 12, 4, UINT32_MAX, "it names no symbol in relocation 0" },
		{ ".nv.info.use", 0, 1, 0, "no attribute begins at 0" },
		{ ".nv.info.use", 0, 1, 5, "no attribute begins at 0" },
		{ ".nv.info.use", 0, 4, 0xffff0004, "an attribute is cut off, that at 0" },
		{ ".nv.callgraph", 0, 4, 0xffff, "it calls what is no symbol, 65535" },
		{ ".note.nv.cuinfo", 0, 4, UINT32_MAX, "a note is cut off" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cubin cubin = read_cubin("variables_sm_90.cubin");
		size_t at = find_bytes(&cubin, changes[i].section) + changes[i].at;
		int r;

		memcpy(cubin.bytes + at, &changes[i].value, changes[i].bytes);
		r = gp_elf_check(cubin.bytes, cubin.size);
		if (r != -EBADMSG || !strstr(gp_image_wrong(), changes[i].says))
			fail_msg("change %zu, of %s: %d, %s", i, changes[i].section, r,
				 gp_image_wrong());
		free(cubin.bytes);
	}
}

/* Whatever one word says, nothing is read beyond the bytes. */
static void
every_word_may_be_anything(void **state)
{
	static const uint32_t values[] = { 0, 1, 8, 0x7ffffff8, 0xfffffff0, UINT32_MAX };
	static const char *const names[] = { "sm_90.cubin", "variables_sm_90_debug.cubin" };

	for (unsigned int name = 0; name < 2; name++) {
		struct cubin cubin = read_cubin(names[name]);
		unsigned int refused = 0;

		for (size_t at = 0; at + 4 <= cubin.size; at += 4) {
			uint32_t word;

			memcpy(&word, cubin.bytes + at, 4);
			for (unsigned int i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				memcpy(cubin.bytes + at, &values[i], 4);
				refused += gp_elf_check(cubin.bytes, cubin.size) == -EBADMSG;
			}
			memcpy(cubin.bytes + at, &word, 4);
		}
		assert_int_equal(gp_elf_check(cubin.bytes, cubin.size), 0);
		assert_in_range(refused, 1000, cubin.size);
		free(cubin.bytes);
	}
}

static void
what_is_cut_off_is_refused(void **state)
{
	struct cubin cubin = read_cubin("sm_90.cubin");

	for (size_t size = 0; size < cubin.size; size += size < 256 ? 1 : 61) {
		uint8_t *cut = malloc(size + 1);

		assert_non_null(cut);
		memcpy(cut, cubin.bytes, size);
		assert_int_equal(gp_elf_check(cut, size), -EBADMSG);
		free(cut);
	}
	free(cubin.bytes);
}

/* A library of one member, as ar writes it. */
static void
members_of_libraries_are_looked_at(void **state)
{
	struct cubin cubin = read_cubin("sm_90.cubin");
	const size_t before = 8 + 60, size = before + cubin.size;
	uint8_t *bytes = calloc(1, size + 1);

	assert_non_null(bytes);
	snprintf((char *)bytes, size, "!<arch>\n%-16s%-12d%-6d%-6d%-8d%-10zu`\n", "k.cubin/", 0, 0,
		 0, 0, cubin.size);
	memcpy(bytes + before, cubin.bytes, cubin.size);
	assert_int_equal(gp_code_check_within(bytes, size, false), 0);
	assert_int_equal(gp_code_check_within(bytes, size, true), -EBADMSG);
	assert_int_equal(gp_code_check_within(bytes, size - 1, false), -EBADMSG);
	assert_non_null(strstr(gp_image_wrong(), "a library's member is cut off"));
	assert_int_equal(gp_code_check_within(bytes, before - 1, false), -EBADMSG);
	assert_non_null(strstr(gp_image_wrong(), "ends within a member's header"));
	memset(bytes + before + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
	assert_int_equal(gp_code_check_within(bytes, size, false), -EBADMSG);
	assert_non_null(strstr(gp_image_wrong(), "table of sections"));
	free(bytes);
	free(cubin.bytes);
}

/* In a fatbin of nvcc's the machine code is damaged, and the image is refused. */
static void
entries_are_looked_at(void **state)
{
	char *bytes = read_fatbin_file("none.fatbin");
	size_t size = size_of("none.fatbin");
	char *elf = memmem(bytes, size, ELFMAG "\2\1", 6);
	struct gp_image *image;

	assert_non_null(elf);
	memset(elf + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
	assert_int_equal(gp_image_create(bytes, &image), 0);
	assert_int_equal(gp_image_check_code(image), -EBADMSG);
	assert_non_null(strstr(gp_image_wrong(), "an ELF for a GPU: its table of sections"));
	gp_image_destroy(image);
	assert_int_equal(gp_code_check_within(bytes, size, false), -EBADMSG);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nvcc_has_written_passes),
		cmocka_unit_test(fatbins_pass),
		cmocka_unit_test(a_number_that_leads_elsewhere_is_refused_by_name),
		cmocka_unit_test(what_leads_nowhere_else_passes),
		cmocka_unit_test(what_is_in_a_section_is_looked_at),
		cmocka_unit_test(every_word_may_be_anything),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(members_of_libraries_are_looked_at),
		cmocka_unit_test(entries_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
