/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc writes passes; with one number of it changed it is refused by name, or harmless. */
#include "image/code_check.h"
#include "image/elf_check.h"
#include "tests/test.h"
#include "tests/unit/image/fatbin_file.h"

#include <errno.h>
#include <lz4.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <zstd.h>

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

/* A buffer of the exact size, so that a sanitizer detects reads beyond it. */
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
		Elf64_Shdr section = gp_elf_get_section(&elf, i);

		if (strcmp(gp_elf_get_section_name(&elf, &section), name) == 0)
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

UNIT_TEST(what_nvcc_has_written_passes)
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
			fail_msg("%s: %s", names[i], gp_image_get_error());
		if (gp_code_check_embedded(cubin.bytes, cubin.size, true, NULL))
			fail_msg("%s, to be linked: %s", names[i], gp_image_get_error());
		free(cubin.bytes);
	}
}

/* Compressed or not, and of a relocatable object. */
UNIT_TEST(fatbins_pass)
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
		if (gp_image_check_code(image, NULL))
			fail_msg("%s: %s", names[i], gp_image_get_error());
		if (gp_code_check_embedded(bytes, size_of(names[i]), false, NULL))
			fail_msg("%s, to be linked: %s", names[i], gp_image_get_error());
		gp_image_destroy(image);
		free(bytes);
	}
}

UNIT_TEST(a_number_that_leads_elsewhere_is_refused_by_name)
{
	static const struct {
		const char *section; /* NULL: the header */
		size_t at, bytes;
		uint64_t value;
		const char *says;
	} changes[] = {
		{ HEADER(e_machine), 62, "wrong machine 62" },
		{ HEADER(e_ehsize), 0, "wrong header size" },
		{ HEADER(e_shentsize), 63, "wrong header size, 63" },
		{ HEADER(e_shoff), UINT64_MAX, "its section table is outside of the file" },
		{ HEADER(e_shnum), 0, "its section table is outside of the file" },
		{ HEADER(e_shnum), 0xfeff, "its section table is outside of the file" },
		{ HEADER(e_shstrndx), 0xfe00, "its section table is outside of the file" },
		{ HEADER(e_shstrndx), 3, "its section names are not a string table, section 3" },
		{ HEADER(e_phnum), 9, "its program headers are outside of the file" },
		{ SECTION(".shstrtab", sh_offset), UINT64_MAX, "section table is outside of" },
		{ SECTION(".shstrtab", sh_size), 0, "section names are not terminated, size 0" },
		{ SECTION(".shstrtab", sh_size), 9, "section names are not terminated, size 9" },
		{ SECTION(".strtab", sh_offset), 1, "a string table is not terminated" },
		{ SECTION(".strtab", sh_size), UINT32_MAX, "it is longer than the file" },
		{ SECTION(".symtab", sh_entsize), 0, "invalid symbol table size" },
		{ SECTION(".symtab", sh_entsize), 8, "invalid symbol table size" },
		{ SECTION(".symtab", sh_link), 0,
		  "symbol names are not a string table, section 0" },
		{ SECTION(".symtab", sh_link), UINT32_MAX, "invalid sh_link" },
		{ SECTION(".symtab", sh_info), 999, "invalid local symbol count 999" },
		{ SECTION(".symtab", sh_type), 0, "type does not match its name, 0" },
		{ SECTION(".text.use", sh_offset), UINT64_MAX, "it is outside of the file" },
		{ SECTION(".text.use", sh_offset), 64, "it overlaps another section" },
		{ SECTION(".text.use", sh_size), UINT64_MAX - 7, "it is longer than the file" },
		{ SECTION(".text.use", sh_size), 8, "too short for symbol" },
		{ SECTION(".text.use", sh_name), UINT32_MAX,
		  "its name is outside of the name table" },
		{ SECTION(".text.use", sh_info), 0xffffff, "invalid symbol" },
		{ SECTION(".text.use", sh_link), UINT32_MAX, "invalid sh_link" },
		{ SECTION(".text.use", sh_addralign), 3, "invalid alignment 3" },
		{ SECTION(".text.use", sh_entsize), 7, "its size is not a multiple of 7" },
		{ SECTION(".nv.info.use", sh_size), 7, "attribute" },
		{ SECTION(".nv.info.use", sh_link), UINT32_MAX, "invalid sh_link" },
		{ SECTION(".nv.info.use", sh_info), UINT32_MAX, "its code section is invalid" },
		{ SECTION(".nv.info.use", sh_type), 1, "type does not match its name" },
		{ SECTION(".nv.callgraph", sh_link), UINT32_MAX, "invalid sh_link" },
		{ SECTION(".nv.constant0.use", sh_size), 8, "invalid parameter bank" },
		{ SECTION(".nv.constant0.use", sh_info), 999, "its code section is invalid" },
		{ SECTION(".nv.global", sh_size), UINT64_C(1) << 32, "it is too large" },
		{ SECTION(".rela.nv.constant4", sh_info), 0, "it relocates an invalid section, 0" },
		{ SECTION(".rela.nv.constant4", sh_info), UINT32_MAX,
		  "it relocates an invalid section" },
		{ SECTION(".rela.nv.constant4", sh_link), UINT32_MAX, "invalid sh_link" },
		{ SECTION(".nv.constant4", sh_size), 8, "offset out of range in relocation" },
		{ SECTION(".note.nv.cuinfo", sh_size), 8, "truncated note" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cubin cubin = read_cubin("variables_sm_90.cubin");
		size_t at = changes[i].section ? find_section(&cubin, changes[i].section) : 0;
		int r;

		memcpy(cubin.bytes + at + changes[i].at, &changes[i].value, changes[i].bytes);
		r = gp_elf_check(cubin.bytes, cubin.size);
		if (r != -EBADMSG || !strstr(gp_image_get_error(), changes[i].says))
			fail_msg("change %zu, of %s at %zu: %d, %s", i,
				 changes[i].section ? changes[i].section : "the header",
				 changes[i].at, r, gp_image_get_error());
		free(cubin.bytes);
	}
}

/* The kernels that cuBLASLt has for Hopper name no symbol in sh_info. */
UNIT_TEST(what_leads_nowhere_else_passes)
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
			fail_msg("change %zu, of %s: %s", i, changes[i].section,
				 gp_image_get_error());
		free(cubin.bytes);
	}
}

UNIT_TEST(what_is_in_a_section_is_looked_at)
{
	static const struct {
		const char *section;
		size_t at, bytes;
		uint64_t value;
		const char *says;
	} changes[] = {
		{ ".symtab", 24, 4, UINT32_MAX, "name out of range for symbol 1" },
		{ ".symtab", 24 + 6, 2, 0xfe00, "missing section of symbol 1" },
		{ ".rela.nv.constant4", 0, 8, 1 << 20, "offset out of range in relocation 0" },
		{ ".rela.nv.constant4", 12, 4, UINT32_MAX, "invalid symbol in relocation 0" },
		{ ".nv.info.use", 0, 1, 0, "invalid attribute at 0" },
		{ ".nv.info.use", 0, 1, 5, "invalid attribute at 0" },
		{ ".nv.info.use", 0, 4, 0xffff0004, "truncated attribute at 0" },
		{ ".nv.callgraph", 0, 4, 0xffff, "call of an invalid symbol, 65535" },
		{ ".note.nv.cuinfo", 0, 4, UINT32_MAX, "truncated note" },
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct cubin cubin = read_cubin("variables_sm_90.cubin");
		size_t at = find_bytes(&cubin, changes[i].section) + changes[i].at;
		int r;

		memcpy(cubin.bytes + at, &changes[i].value, changes[i].bytes);
		r = gp_elf_check(cubin.bytes, cubin.size);
		if (r != -EBADMSG || !strstr(gp_image_get_error(), changes[i].says))
			fail_msg("change %zu, of %s: %d, %s", i, changes[i].section, r,
				 gp_image_get_error());
		free(cubin.bytes);
	}
}

/* For every value of one word, nothing is read beyond the bytes. */
UNIT_TEST(every_word_may_be_anything)
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

UNIT_TEST(what_is_cut_off_is_refused)
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
UNIT_TEST(members_of_libraries_are_looked_at)
{
	struct cubin cubin = read_cubin("sm_90.cubin");
	const size_t before = 8 + 60, size = before + cubin.size;
	uint8_t *bytes = calloc(1, size + 1);

	assert_non_null(bytes);
	snprintf((char *)bytes, size, "!<arch>\n%-16s%-12d%-6d%-6d%-8d%-10zu`\n", "k.cubin/", 0, 0,
		 0, 0, cubin.size);
	memcpy(bytes + before, cubin.bytes, cubin.size);
	assert_int_equal(gp_code_check_embedded(bytes, size, false, NULL), 0);
	assert_int_equal(gp_code_check_embedded(bytes, size, true, NULL), -EBADMSG);
	assert_int_equal(gp_code_check_embedded(bytes, size - 1, false, NULL), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "truncated library member"));
	assert_int_equal(gp_code_check_embedded(bytes, before - 1, false, NULL), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "truncated library member header"));
	memset(bytes + before + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
	assert_int_equal(gp_code_check_embedded(bytes, size, false, NULL), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "section table"));
	free(bytes);
	free(cubin.bytes);
}

/* In a fatbin of nvcc's the machine code is damaged, and the image is refused. */
UNIT_TEST(entries_are_looked_at)
{
	char *bytes = read_fatbin_file("none.fatbin");
	size_t size = size_of("none.fatbin");
	char *elf = memmem(bytes, size, ELFMAG "\2\1", 6);
	struct gp_image *image;

	assert_non_null(elf);
	memset(elf + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
	assert_int_equal(gp_image_create(bytes, &image), 0);
	assert_int_equal(gp_image_check_code(image, NULL), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "an ELF for a GPU: its section table"));
	gp_image_destroy(image);
	assert_int_equal(gp_code_check_embedded(bytes, size, false, NULL), -EBADMSG);
	free(bytes);
}

struct test_gate {
	struct gp_unpack_limiter gate;
	int result;
	uint64_t entered, left;
	_Atomic bool stop;
};

static int
gate_enter(struct gp_unpack_limiter *limiter, uint64_t size)
{
	struct test_gate *test = (struct test_gate *)limiter;

	test->entered += size;
	return test->result;
}

static void
gate_leave(struct gp_unpack_limiter *limiter, uint64_t size)
{
	((struct test_gate *)limiter)->left += size;
}

static struct test_gate
make_gate(void)
{
	return (struct test_gate){ .gate = { .enter = gate_enter, .leave = gate_leave } };
}

/* A fatbin with one compressed entry, padded to 8 bytes; takes payload over. */
static uint8_t *
make_packed(unsigned int kind, uint64_t flags, uint8_t *payload, size_t stored, uint64_t raw,
	    size_t *size_p)
{
	const uint64_t padded = (stored + 7) / 8 * 8, body = 72 + padded;
	const uint32_t header[] = { 0xba55ed50, 0x00100001 }, compressed = (uint32_t)stored;
	const uint32_t entry[] = { kind | 0x01010000, 72 }, options = 64, sm = 90;
	uint8_t *bytes = calloc(1, 16 + body), *at = bytes + 16;

	assert_non_null(bytes);
	memcpy(bytes, header, 8);
	memcpy(bytes + 8, &body, 8);
	memcpy(at, entry, 8);
	memcpy(at + 8, &padded, 8);
	memcpy(at + 16, &compressed, 4);
	memcpy(at + 20, &options, 4); /* a place: zeros, nowhere */
	memcpy(at + 28, &sm, 4);
	memcpy(at + 40, &flags, 8);
	memcpy(at + 56, &raw, 8);
	memcpy(at + 72, payload, stored);
	free(payload);
	*size_p = 16 + body;
	return bytes;
}

static uint8_t *
pack(unsigned int kind, uint64_t flags, const void *raw, size_t raw_size, size_t *size_p)
{
	const size_t bound = raw_size + raw_size / 128 + 1024;
	uint8_t *payload = malloc(bound);
	size_t stored;

	assert_non_null(payload);
	if (flags & GP_FATBIN_ZSTD)
		stored = ZSTD_compress(payload, bound, raw, raw_size, 1);
	else
		stored = (size_t)LZ4_compress_default(raw, (char *)payload, (int)raw_size,
						      (int)bound);
	assert_true(stored > 0 && stored <= bound);
	return make_packed(kind, flags, payload, stored, raw_size, size_p);
}

/* zstd frames whose blocks are one repeated byte. */
static uint8_t *
pack_repeated(unsigned int kind, uint32_t raw, size_t *size_p)
{
	const uint32_t block = 128 << 10, magic = 0xfd2fb528;
	const uint64_t raw_size = raw;
	const size_t stored = 13 + (size_t)raw / block * 4;
	uint8_t *payload = malloc(stored), *at = payload;

	assert_non_null(payload);
	memcpy(at, &magic, 4);
	at[4] = 0xe0;
	memcpy(at + 5, &raw_size, 8);
	at += 13;
	for (uint32_t left = raw; left; left -= block) {
		const uint32_t header = (left == block) | 1u << 1 | block << 3;

		memcpy(at, &header, 3);
		at[3] = 7;
		at += 4;
	}
	return make_packed(kind, GP_FATBIN_ZSTD, payload, stored, raw, size_p);
}

UNIT_TEST(compressed_code_passes_the_gate)
{
	const uint64_t ways[] = { GP_FATBIN_ZSTD, GP_FATBIN_LZ4 };
	struct cubin cubin = read_cubin("sm_90.cubin");

	for (size_t i = 0; i < 2; i++) {
		struct test_gate gate = make_gate();
		size_t size;
		uint8_t *bytes = pack(GP_FATBIN_ELF, ways[i], cubin.bytes, cubin.size, &size);

		assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), 0);
		assert_int_equal(gate.entered, cubin.size);
		assert_int_equal(gate.left, cubin.size);
		/* Cut off: whatever it says, it has not the bytes. */
		bytes[16 + 56]++;
		assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), -EBADMSG);
		assert_non_null(strstr(gp_image_get_error(), "cannot be unpacked"));
		bytes[16 + 56]--;
		assert_int_equal(gate.left, gate.entered);
		gate.result = -EDQUOT;
		assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), -EDQUOT);
		assert_int_equal(gate.entered - gate.left, cubin.size);
		gate = make_gate();
		gate.gate.stop = &gate.stop;
		atomic_store(&gate.stop, true);
		assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate),
				 -ECANCELED);
		assert_int_equal(gate.left, gate.entered);
		free(bytes);
	}
	free(cubin.bytes);
}

static long
get_peak_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

UNIT_TEST(the_first_bytes_are_looked_at_before_the_rest)
{
	const size_t raw = (size_t)64 << 20;
	const long peak = get_peak_kib();
	struct test_gate gate = make_gate();
	uint8_t *zeros = calloc(1, raw), *bytes;
	size_t size;

	/* meson has malloc() fill all memory, which would count as used. */
	(void)mallopt(M_PERTURB, 0);
	bytes = pack_repeated(GP_FATBIN_ELF, 1 << 30, &size);
	assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "not an ELF for a GPU"));
	assert_int_equal(gate.entered, 1 << 30);
	assert_int_equal(gate.left, 1 << 30);
	free(bytes);
	bytes = pack(GP_FATBIN_ELF, GP_FATBIN_LZ4, zeros, raw, &size);
	assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), -EBADMSG);
	assert_non_null(strstr(gp_image_get_error(), "not an ELF for a GPU"));
	assert_true(get_peak_kib() - peak < 512 << 10);
	free(bytes);
	free(zeros);
}

/* The driver unpacks it. */
UNIT_TEST(other_code_is_not_unpacked)
{
	const struct gp_image_target software = { .software = true };
	const struct gp_image_target gpu = { .major = 9 };
	struct test_gate gate = make_gate();
	size_t size;
	uint8_t *bytes = pack_repeated(GP_FATBIN_PTX, 1 << 30, &size);

	assert_int_equal(gp_code_check_embedded(bytes, size, false, &gate.gate), 0);
	assert_int_equal(gate.entered, 0);
	assert_int_equal(gp_code_driver_size(bytes, size, &software), 1 << 30);
	assert_int_equal(gp_code_driver_size(bytes, size, &gpu), 1 << 30);
	free(bytes);
}

/* Of what the device cannot use, nothing. */
UNIT_TEST(machine_code_of_the_device_counts_as_unpacked)
{
	const struct gp_image_target software = { .software = true };
	const struct gp_image_target gpu = { .major = 9 }, other = { .major = 8 };
	struct cubin cubin = read_cubin("sm_90.cubin");
	size_t size;
	uint8_t *bytes = pack(GP_FATBIN_ELF, GP_FATBIN_ZSTD, cubin.bytes, cubin.size, &size);

	assert_int_equal(gp_code_driver_size(bytes, size, &gpu), cubin.size);
	assert_int_equal(gp_code_driver_size(bytes, size, &other), 0);
	assert_int_equal(gp_code_driver_size(bytes, size, &software), 0);
	free(bytes);
	free(cubin.bytes);
}

UNIT_TEST_MAIN(NULL, NULL)
