/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXTRACT_MAX ((size_t)64 << 20)

static const struct gp_image_target hopper = { .major = 9, .minor = 0 };
static const struct gp_image_target ampere_86 = { .major = 8, .minor = 6 };
static const struct gp_image_target turing = { .major = 7, .minor = 5 };
static const struct gp_image_target software = { .software = true };

/* The runtime's side of the objects that nvcc made. */
static void *wrappers[8];
static unsigned int wrapper_count;

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, ...);
char __cudaInitModule(void **handle);
#pragma GCC visibility pop

void **
__cudaRegisterFatBinary(void *wrapper)
{
	assert_true(wrapper_count < 8);
	wrappers[wrapper_count++] = wrapper;
	return &wrappers[wrapper_count - 1];
}

void
__cudaRegisterFatBinaryEnd(void **handle)
{
}

void
__cudaUnregisterFatBinary(void **handle)
{
}

void
__cudaRegisterFunction(void **handle, ...)
{
}

char
__cudaInitModule(void **handle)
{
	return 0;
}

static const char *
path_of(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", getenv("GP_TEST_FATBINS"), name);
	return path;
}

static void *
read_whole(const char *name, size_t *size_p)
{
	int fd = open(path_of(name), O_RDONLY);
	struct stat st;
	char *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*size_p = (size_t)st.st_size;
	return bytes;
}

static struct gp_image *
create(const void *pointer)
{
	struct gp_image *image;

	assert_int_equal(gp_image_create(pointer, &image), 0);
	return image;
}

static struct gp_image *
flat_round_trip(const void *pointer, const struct gp_image_target *target, void **bytes_p)
{
	struct gp_image *image = create(pointer), *opened;
	size_t size;

	assert_int_equal(gp_image_flatten(image, target, bytes_p, &size), 0);
	gp_image_destroy(image);
	assert_int_equal(gp_image_open(*bytes_p, size, &opened), 0);
	return opened;
}

/* "ptx75 elf80 ..." with 'a' behind arch-specific ones. */
static const char *
entries(const struct gp_image *image, unsigned int i)
{
	static char text[512];
	struct gp_image_blob blob = gp_image_blob(image, i);
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;
	size_t at = 0;

	text[0] = '\0';
	assert_int_equal(gp_fatbin_walk(&walk, blob.data, blob.size), 0);
	while (!gp_fatbin_next(&walk, &entry)) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%u%s", at ? " " : "",
				       entry.kind == GP_FATBIN_PTX ? "ptx" : "elf", entry.sm,
				       entry.flags & GP_FATBIN_ARCH_SPECIFIC ? "a" : "");
	}
	return text;
}

static const char *
entries_for(const char *name, const struct gp_image_target *target)
{
	size_t size;
	void *file = read_whole(name, &size), *bytes;
	struct gp_image *image = flat_round_trip(file, target, &bytes);
	const char *text = entries(image, 0);

	gp_image_destroy(image);
	free(bytes);
	free(file);
	return text;
}

UNIT_TEST(every_compression_mode_extracts_to_the_same_ptx)
{
	static const char *const names[] = { "none.fatbin", "balance.fatbin", "size.fatbin",
					     "speed.fatbin" };
	static const uint64_t packing[] = { 0, GP_FATBIN_ZSTD, GP_FATBIN_ZSTD, GP_FATBIN_LZ4 };
	char *first = NULL;

	for (unsigned int i = 0; i < 4; i++) {
		size_t size, length;
		void *file = read_whole(names[i], &size);
		struct gp_image *image = create(file);
		struct gp_fatbin_entry entry;
		char *ptx;

		assert_int_equal(gp_fatbin_best_ptx(gp_image_blob(image, 0), &software, &entry), 0);
		assert_int_equal(entry.flags & (GP_FATBIN_ZSTD | GP_FATBIN_LZ4), packing[i]);
		assert_int_equal(gp_image_software_ptx(image, 0, EXTRACT_MAX, &ptx, &length), 0);
		assert_non_null(strstr(ptx, ".entry vector_add"));
		if (!first)
			first = strdup(ptx);
		assert_string_equal(ptx, first);
		free(ptx);
		gp_image_destroy(image);
		free(file);
	}
	free(first);
}

UNIT_TEST(compressed_elf_entry_extracts_to_an_elf_of_its_size)
{
	size_t size, length, elf_size;
	void *file = read_whole("size.fatbin", &size), *elf;
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	assert_int_equal(gp_fatbin_walk(&walk, file, size), 0);
	do
		assert_int_equal(gp_fatbin_next(&walk, &entry), 0);
	while (entry.kind != GP_FATBIN_ELF);
	assert_true(entry.flags & GP_FATBIN_ZSTD);
	assert_int_equal(gp_fatbin_extract(&entry, EXTRACT_MAX, &elf, &length), 0);
	assert_int_equal(gp_image_kind(elf), GP_IMAGE_ELF);
	assert_int_equal(gp_image_size(elf, &elf_size), 0);
	assert_int_equal(elf_size, length);
	free(elf);
	free(file);
}

UNIT_TEST(sizes_are_those_of_the_files)
{
	static const char *const names[] = { "none.fatbin", "debug.fatbin", "gencodes.fatbin",
					     "sm_90.cubin" };

	for (unsigned int i = 0; i < 4; i++) {
		size_t size, found;
		void *file = read_whole(names[i], &size);

		assert_int_equal(gp_image_size(file, &found), 0);
		assert_int_equal(found, size);
		free(file);
	}
}

UNIT_TEST(debug_entry_names_its_source)
{
	size_t size;
	void *file = read_whole("debug.fatbin", &size);
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	assert_int_equal(gp_fatbin_walk(&walk, file, size), 0);
	assert_int_equal(gp_fatbin_next(&walk, &entry), 0);
	assert_true(entry.flags & GP_FATBIN_DEBUG);
	assert_non_null(entry.name);
	assert_non_null(memmem(entry.name, entry.name_size, "first.cu", 8));
	free(file);
}

UNIT_TEST(filter_keeps_what_a_device_can_use)
{
	assert_string_equal(entries_for("gencodes.fatbin", &hopper), "elf90 ptx90 elf90a ptx90a");
	assert_string_equal(entries_for("gencodes.fatbin", &ampere_86), "ptx75 elf80 elf86");
	assert_string_equal(entries_for("gencodes.fatbin", &turing), "ptx75");
	assert_string_equal(entries_for("gencodes.fatbin", &software), "ptx75");
	assert_string_equal(entries_for("arch_only.fatbin", &software), "ptx90a");
}

UNIT_TEST(image_with_nothing_for_the_device_is_refused)
{
	size_t size, flat_size;
	void *file = read_whole("elf_only.fatbin", &size), *bytes;
	struct gp_image *image = create(file);
	char *ptx;

	assert_int_equal(gp_image_flatten(image, &hopper, &bytes, &flat_size), GP_IMAGE_E_NONE);
	assert_int_equal(gp_image_flatten(image, &software, &bytes, &flat_size), GP_IMAGE_E_NONE);
	assert_int_equal(gp_image_software_ptx(image, 0, EXTRACT_MAX, &ptx, &flat_size),
			 GP_IMAGE_E_NONE);
	gp_image_destroy(image);
	free(file);
}

UNIT_TEST(flat_bytes_without_a_target_hold_the_fatbin_unchanged)
{
	size_t size;
	void *file = read_whole("gencodes.fatbin", &size), *bytes;
	struct gp_image *image = flat_round_trip(file, NULL, &bytes);

	assert_int_equal(gp_image_type(image), GP_IMAGE_FATBIN);
	assert_int_equal(gp_image_blob(image, 0).size, size);
	assert_memory_equal(gp_image_driver_pointer(image), file, size);
	gp_image_destroy(image);
	free(bytes);
	free(file);
}

UNIT_TEST(elf_and_text_survive_the_round_trip)
{
	static const char text[] = "\n.version 9.0\n.target sm_75\n";
	size_t size;
	void *file = read_whole("sm_90.cubin", &size), *bytes;
	struct gp_image *image = flat_round_trip(file, &hopper, &bytes);

	assert_int_equal(gp_image_type(image), GP_IMAGE_ELF);
	assert_memory_equal(gp_image_driver_pointer(image), file, size);
	gp_image_destroy(image);
	free(bytes);
	free(file);

	image = flat_round_trip(text, &software, &bytes);
	assert_int_equal(gp_image_type(image), GP_IMAGE_PTX);
	assert_string_equal(gp_image_driver_pointer(image), text);
	gp_image_destroy(image);
	free(bytes);
}

static void *
wrapper_from(const char *name, void **library_p)
{
	wrapper_count = 0;
	*library_p = dlopen(path_of(name), RTLD_LAZY | RTLD_LOCAL);
	assert_non_null(*library_p);
	assert_true(wrapper_count > 0);
	return wrappers[0];
}

UNIT_TEST(plain_wrapper_is_rebuilt_around_its_fatbin)
{
	void *library, *bytes;
	struct gp_image *image;
	const uint32_t *words;

	wrapper_from("wrapper_plain.so", &library);
	assert_int_equal(wrapper_count, 2);
	image = flat_round_trip(wrappers[1], &software, &bytes);
	assert_int_equal(gp_image_type(image), GP_IMAGE_WRAPPER);
	assert_int_equal(gp_image_count(image), 1);
	assert_string_equal(entries(image, 0), "ptx75");
	words = gp_image_driver_pointer(image);
	assert_int_equal(words[0], 0x466243b1);
	assert_int_equal(words[1], 1);
	gp_image_destroy(image);
	free(bytes);
	dlclose(library);
}

UNIT_TEST(relocatable_wrapper_keeps_its_further_fatbins)
{
	void *library, *bytes;
	void *wrapper = wrapper_from("wrapper_rdc.so", &library);
	struct gp_image *image = flat_round_trip(wrapper, &software, &bytes), *again;
	unsigned int with_ptx = 0;

	assert_int_equal(gp_image_type(image), GP_IMAGE_WRAPPER);
	assert_true(gp_image_count(image) >= 3);
	assert_int_equal(((const uint32_t *)gp_image_driver_pointer(image))[1], 2);
	again = create(gp_image_driver_pointer(image));
	assert_int_equal(gp_image_count(again), gp_image_count(image));
	for (unsigned int i = 0; i < gp_image_count(again); i++) {
		size_t size;
		char *ptx;

		assert_ptr_equal(gp_image_blob(again, i).data, gp_image_blob(image, i).data);
		if (gp_image_software_ptx(again, i, EXTRACT_MAX, &ptx, &size))
			continue;
		with_ptx++;
		free(ptx);
	}
	assert_true(with_ptx >= 2);
	gp_image_destroy(again);
	gp_image_destroy(image);
	free(bytes);
	dlclose(library);
}

UNIT_TEST(what_is_no_image_is_refused)
{
	static const uint32_t old[4] = { 0x1ee55a01, 4, 0, 0 };
	static const struct {
		uint32_t magic, version;
		const void *data, *further;
	} bad_version = { 0x466243b1, 7, old, NULL }, no_data = { 0x466243b1, 1, NULL, NULL },
	  bad_data = { 0x466243b1, 1, old, NULL };
	struct gp_image *image;
	size_t size;

	assert_int_equal(gp_image_kind(old), GP_IMAGE_UNKNOWN);
	assert_int_equal(gp_image_kind(""), GP_IMAGE_UNKNOWN);
	assert_int_equal(gp_image_create(old, &image), -EBADMSG);
	assert_int_equal(gp_image_create(&bad_version, &image), -EBADMSG);
	assert_int_equal(gp_image_create(&no_data, &image), -EBADMSG);
	assert_int_equal(gp_image_create(&bad_data, &image), -EBADMSG);
	assert_int_equal(gp_image_size(&bad_data, &size), -EBADMSG);
}

static void *
flat_of(const char *name, size_t *size_p)
{
	size_t size;
	void *file = read_whole(name, &size), *bytes;
	struct gp_image *image = create(file);

	assert_int_equal(gp_image_flatten(image, NULL, &bytes, size_p), 0);
	gp_image_destroy(image);
	free(file);
	return bytes;
}

UNIT_TEST(every_truncation_is_refused)
{
	size_t size;
	void *flat = flat_of("balance.fatbin", &size);
	struct gp_image *image;

	for (size_t n = 0; n < size; n++) {
		void *part = malloc(n ? n : 1);

		memcpy(part, flat, n);
		assert_true(gp_image_open(part, n, &image) < 0);
		if (n >= 32) {
			uint64_t total = n;

			memcpy((char *)part + 16, &total, sizeof(total));
			assert_true(gp_image_open(part, n, &image) < 0);
		}
		free(part);
	}
	free(flat);
}

/* For every flipped word, walking and extracting stay inside the bytes. */
UNIT_TEST(corrupt_words_are_survived)
{
	static const uint32_t values[] = { 0, 1, 0x7fffffff, 0xffffffff, 0x80000000 };
	size_t size;
	uint8_t *flat = flat_of("size.fatbin", &size);
	unsigned int refused = 0;

	for (size_t at = 0; at + 4 <= size && at < 4096; at += 4) {
		for (unsigned int v = 0; v < 5; v++) {
			struct gp_image *image;
			uint32_t saved;
			size_t length;
			char *ptx;

			memcpy(&saved, flat + at, 4);
			memcpy(flat + at, &values[v], 4);
			if (gp_image_open(flat, size, &image)) {
				refused++;
			} else {
				if (!gp_image_software_ptx(image, 0, 1 << 20, &ptx, &length))
					free(ptx);
				gp_image_destroy(image);
			}
			memcpy(flat + at, &saved, 4);
		}
	}
	assert_true(refused > 20);
	free(flat);
}

UNIT_TEST(extraction_stops_at_the_limit)
{
	size_t size, length;
	void *file = read_whole("balance.fatbin", &size);
	struct gp_image *image = create(file);
	char *ptx;

	assert_int_equal(gp_image_software_ptx(image, 0, 100, &ptx, &length), -EFBIG);
	gp_image_destroy(image);
	free(file);
}

UNIT_TEST(flat_bytes_are_the_same_every_time)
{
	size_t size, again_size;
	void *flat = flat_of("gencodes.fatbin", &size);
	void *again = flat_of("gencodes.fatbin", &again_size);

	assert_int_equal(size, again_size);
	assert_memory_equal(flat, again, size);
	free(flat);
	free(again);
}

UNIT_TEST_MAIN(NULL, NULL)
