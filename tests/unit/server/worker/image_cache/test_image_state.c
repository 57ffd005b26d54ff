/* SPDX-License-Identifier: Apache-2.0 */
/* Size of the variables of device code, read from PTX and ELF. */
#include "server/worker/image_cache/image_state.h"
#include "tests/test.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static uint64_t
size_of(const char *text)
{
	/* A buffer of the exact size, so that a sanitizer detects reads beyond it. */
	size_t size = strlen(text);
	char *copy = malloc(size);
	uint64_t sum;

	assert_non_null(copy);
	memcpy(copy, text, size);
	sum = gpd_variables_from_code(copy, size).size;
	free(copy);
	return sum;
}

UNIT_TEST(declarations_of_ptx_are_added_up)
{
	assert_int_equal(size_of(HEAD ".global .align 4 .u32 counter;\n"), 4);
	assert_int_equal(size_of(HEAD ".visible .global .align 1 .b8 big[67108864];\n"), 67108864);
	assert_int_equal(size_of(HEAD ".global .align 16 .v4 .f32 rows[10] [3];\n"), 480);
	assert_int_equal(size_of(HEAD ".global .b8 big[0x10000000];\n"), 0x10000000);
	assert_int_equal(size_of(HEAD ".global .b8 a[010];.global .b8 b[0b11];.global .b8 c[5U];"),
			 16);
	assert_int_equal(size_of(HEAD ".const .b8 a[9], b[9];.global /* .const */ .b8 c[5];"), 5);
	assert_int_equal(size_of(HEAD ".global .b8 a, /*.const .texref*/ b[7];"), 8);
	assert_int_equal(size_of(HEAD ".global .b8 a[4], b[5];.global .attribute(.managed) .b8 c;"),
			 10);
	assert_int_equal(size_of(HEAD ".global/**/ .align/* x */4 .b32 // y\n big[/*x*/100 ];\n"),
			 400);
	assert_int_equal(size_of(HEAD ".global .b8 a[1024*1024];"), GPD_VARIABLES_UNKNOWN);
	assert_int_equal(size_of(HEAD ".global .f64 a;\n.global .s16 b[3] = {1, 2, 3};\n"), 14);
}

UNIT_TEST(what_declares_nothing_counts_nothing)
{
	assert_int_equal(size_of(HEAD ".extern .global .align 1 .b8 other[100];\n"), 0);
	assert_int_equal(size_of(HEAD ".entry k()\n{ ld.global.u32 %r1, [%rd1];\n"
				      "st.global.v2.u32 [%rd1], {%r1, %r2};\n}\n"),
			 0);
	assert_int_equal(size_of(HEAD ".global .texref picture;\n"), 0);
	assert_int_equal(size_of(HEAD ".visible .entry k(.param .u64 .ptr .global .align 4 p)\n"),
			 0);
	assert_int_equal(size_of(HEAD ".const .align 4 .b8 c[100];\n.shared .b8 s[100];\n"), 0);
	assert_int_equal(size_of(".global .b8 big[100];"), 0);
	assert_int_equal(size_of(""), 0);
}

UNIT_TEST(text_that_breaks_off_is_read_to_its_end_and_no_further)
{
	static const char whole[] = HEAD ".global .align 4 .v2 .b32 name[12][34] = {1};";

	for (size_t size = 0; size < sizeof(whole); size++) {
		char *copy = malloc(size ? size : 1);
		uint64_t sum;

		assert_non_null(copy);
		memcpy(copy, whole, size);
		sum = gpd_variables_from_code(copy, size).size;
		assert_true(sum <= 8 * 12 * 34 || sum == GPD_VARIABLES_UNKNOWN);
		free(copy);
	}
	/* Absurd sizes do not wrap around. */
	assert_true(size_of(HEAD ".global .b8 a[99999999999999999999][99999999999999999999];") >=
		    (uint64_t)1 << 47);
	assert_true(
		size_of(HEAD ".global .b8 a[281474976710656];.global .b8 b[281474976710656];") >=
		(uint64_t)1 << 47);
}

UNIT_TEST(what_is_declared_in_a_body_is_unknown)
{
	static const char body[] = ".entry k() { .global .b8 hidden[100000]; ret; }\n";
	char text[400];

	assert_int_equal(size_of(HEAD ".entry k() { .global .b8 hidden[100000]; ret; }\n"),
			 GPD_VARIABLES_UNKNOWN);
	snprintf(text, sizeof(text), HEAD ".global .b8 a[4];\n%s.const .b8 b[4];\n", body);
	assert_int_equal(size_of(text), GPD_VARIABLES_UNKNOWN);
	snprintf(text, sizeof(text), HEAD "%s.global .b8 $str[4], $str1[4];\n", body);
	assert_int_equal(size_of(text), GPD_VARIABLES_UNKNOWN);
}

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	char names[64];
};

static struct image
make_elf(void)
{
	static const char names[] = "\0.nv.global\0.nv.global.init\0.names";
	struct image image = { .header = { .e_ident = ELFMAG } };

	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.header.e_shoff = offsetof(struct image, sections);
	image.header.e_shentsize = sizeof(Elf64_Shdr);
	image.header.e_shnum = 4;
	image.header.e_shstrndx = 3;
	image.sections[1].sh_name = 1;
	image.sections[1].sh_size = 1000;
	image.sections[2].sh_name = 12;
	image.sections[2].sh_size = 24;
	image.sections[3].sh_name = 28;
	image.sections[3].sh_offset = offsetof(struct image, names);
	image.sections[3].sh_size = sizeof(names);
	memcpy(image.names, names, sizeof(names));
	return image;
}

UNIT_TEST(sections_of_an_elf_are_added_up)
{
	struct image image = make_elf();

	assert_int_equal(gpd_variables_from_code(&image, sizeof(image)).size, 1024);
}

UNIT_TEST(an_elf_is_believed_in_nothing)
{
	struct image whole = make_elf();

	for (size_t size = 0; size <= sizeof(whole); size++) {
		void *copy = malloc(size ? size : 1);
		uint64_t sum;

		assert_non_null(copy);
		memcpy(copy, &whole, size);
		sum = gpd_variables_from_code(copy, size).size;
		assert_true(sum <= 1024 || sum == GPD_VARIABLES_UNKNOWN);
		free(copy);
	}
	/* Every field in turn is as large as can be. */
	for (size_t at = EI_CLASS + 1; at + 8 <= sizeof(whole); at++) {
		struct image bad = whole;

		memset((char *)&bad + at, 0xff, 8);
		(void)gpd_variables_from_code(&bad, sizeof(bad)).size;
	}
}

static bool
keeps(const char *text)
{
	size_t size = strlen(text);
	char *copy = malloc(size);
	bool state;

	assert_non_null(copy);
	memcpy(copy, text, size);
	state = gpd_variables_from_code(copy, size).state;
	free(copy);
	return state;
}

UNIT_TEST(ptx_with_variables_or_references_keeps_state)
{
	assert_true(keeps(HEAD ".global .u32 counter;\n"));
	assert_true(keeps(HEAD ".const .align 4 .b8 table[64];\n"));
	assert_true(keeps(HEAD ".extern .global .u32 counter;\n"));
	assert_true(keeps(HEAD ".extern .const .u32 table;\n"));
	assert_true(keeps(HEAD ".global .attribute(.managed) .u32 counter;\n"));
	assert_true(keeps(HEAD ".global .texref picture;\n"));
	assert_true(keeps(HEAD ".tex .texref picture;\n"));
	assert_true(keeps(HEAD ".global .align 1 .b8 $str[4] = {37, 100}, counter[4];\n"));
	assert_true(keeps(HEAD ".global .align 1 .b8 $str[4] = {37, 100}"));
	assert_true(keeps(HEAD ".global .align 4 .b8 _ZN4cuda3std7counterE[4];\n"));
	assert_true(keeps("no code at all"));
	assert_true(keeps(""));
}

UNIT_TEST(ptx_of_kernels_and_constants_keeps_none)
{
	assert_false(keeps(HEAD
			   ".visible .entry k(.param .u64 .ptr .global .align 4 p,\n"
			   ".param .u64 .ptr .const .align 4 q)\n{ ld.global.u32 %r1, [%rd1];\n"
			   "ld.const.u32 %r2, [%rd2];\n cvta.to.global.u64 %rd3, %rd4; }\n"));
	assert_false(keeps(HEAD ".shared .b8 s[100];\n.extern .shared .b8 t[];\n"));
	assert_false(keeps(HEAD ".global .align 1 .b8 $str[4] = {37, 100, 10};\n"
				".global .align 1 .b8 __unnamed_1[3] = {107, 40, 41};\n"
				".global .align 8 .b8 __cudart_i2opi_d[16] = {8, 93, 141};\n"
				".global .align 1 .b8 _ZN12_GLOBAL__N_14cuda3std6ignoreE[1];\n"));
}

/* A section of a name, with a symbol or two in it. */
struct code {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[2];
	char names[96];
};

static struct code
make_code(const char *section, uint64_t size, const char *symbol)
{
	struct code code = { .header = { .e_ident = ELFMAG } };

	code.header.e_ident[EI_CLASS] = ELFCLASS64;
	code.header.e_ident[EI_DATA] = ELFDATA2LSB;
	code.header.e_shoff = offsetof(struct code, sections);
	code.header.e_shentsize = sizeof(Elf64_Shdr);
	code.header.e_shnum = 4;
	code.header.e_shstrndx = 3;
	code.sections[1].sh_name = 1;
	code.sections[1].sh_size = size;
	code.sections[1].sh_addralign = 4;
	code.sections[2].sh_type = SHT_SYMTAB;
	code.sections[2].sh_link = 3;
	code.sections[2].sh_offset = offsetof(struct code, symbols);
	code.sections[2].sh_size = sizeof(code.symbols);
	code.sections[3].sh_offset = offsetof(struct code, names);
	code.sections[3].sh_size = sizeof(code.names);
	code.symbols[1].st_name = 48;
	code.symbols[1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
	code.symbols[1].st_shndx = 1;
	code.symbols[1].st_size = 16;
	strcpy(code.names + 1, section);
	strcpy(code.names + 48, symbol);
	return code;
}

static bool
code_keeps(const struct code *code)
{
	return gpd_variables_from_code(code, sizeof(*code)).state;
}

UNIT_TEST(an_elf_keeps_state_in_what_can_be_written)
{
	struct code code = make_code(".nv.global", 16, "counter");

	assert_true(code_keeps(&code));
	code = make_code(".nv.constant3", 16, "table");
	assert_true(code_keeps(&code));
	code = make_code(".new", 16, "thing");
	code.sections[1].sh_flags = SHF_WRITE;
	assert_true(code_keeps(&code));
	/* Only a part of it is reported. */
	code = make_code(".nv.global.init", 64, "__cudart_i2opi_d");
	assert_true(code_keeps(&code));
	/* A reference to a texture. */
	code = make_code(".text", 16, "picture");
	code.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_LOOS);
	assert_true(code_keeps(&code));
}

UNIT_TEST(an_elf_of_kernels_and_constants_keeps_none)
{
	static const char *const passing[] = { ".text.k",         ".nv.shared.k",
					       ".nv.constant0.k", ".nv.constant2.k",
					       ".nv.constant4",   ".nv.shared.reserved.0" };
	struct code code = make_code(".nv.global.init", 16, "__cudart_i2opi_d");

	assert_false(code_keeps(&code));
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		code = make_code(passing[i], 16, "thing");
		code.sections[1].sh_flags = i ? SHF_WRITE : 0;
		assert_false(code_keeps(&code));
	}
}

UNIT_TEST(an_elf_that_is_damaged_may_keep_anything)
{
	struct code whole = make_code(".nv.global", 16, "counter");

	for (size_t size = 0; size < sizeof(whole); size++) {
		void *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, &whole, size);
		assert_true(gpd_variables_from_code(copy, size).state);
		free(copy);
	}
	for (size_t at = EI_CLASS + 1; at + 8 <= sizeof(whole); at++) {
		struct code bad = whole;

		memset((char *)&bad + at, 0xff, 8);
		(void)code_keeps(&bad);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
