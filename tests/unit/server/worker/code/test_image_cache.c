/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"
#include "server/common/ledger/code_memory.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/code/image_disk.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 400

static char dir[64];
static struct gpd_code_memory code;

static int
setup(void **state)
{
	strcpy(dir, "/tmp/gpupool-cache-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
	char command[128];

	gpd_image_cache_stop();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void
start(uint64_t memory, uint64_t disk)
{
	const struct gpd_image_cache_limits limits = { memory, disk };

	gpd_image_cache_start(dir, &limits);
}

static void *
content(char fill, size_t size, uint8_t *sha256)
{
	void *bytes = gpd_image_bytes_alloc(size);

	memset(bytes, fill, size);
	assert_int_equal(EVP_Digest(bytes, size, sha256, NULL, EVP_sha256(), NULL), 1);
	return bytes;
}

static struct gpd_blob *
add(const uint8_t *sha256, void *bytes, size_t size)
{
	assert_true(gpd_image_cache_take(size, 0));
	return gpd_image_cache_add(sha256, bytes, size);
}

static struct gpd_blob *
find(const uint8_t *sha256, size_t size)
{
	struct gpd_image_name name = { .size = size };
	struct gpd_blob *blob;
	bool full;

	memcpy(name.sha256, sha256, sizeof(name.sha256));
	blob = gpd_image_cache_find(&name, 0, &full);
	assert_false(full);
	return blob;
}

static void
put(char fill, size_t size)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	void *bytes = content(fill, size, sha256);

	gpd_blob_unref(add(sha256, bytes, size));
}

static bool
has(char fill, size_t size)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gpd_blob *blob;

	free(content(fill, size, sha256));
	blob = find(sha256, size);
	gpd_blob_unref(blob);
	return blob;
}

static unsigned int
files(char *last)
{
	DIR *opened = opendir(dir);
	struct dirent *entry;
	unsigned int count = 0;

	while ((entry = readdir(opened))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (last)
			snprintf(last, NAME_SIZE, "%s/%s", dir, entry->d_name);
	}
	closedir(opened);
	return count;
}

static void
a_blob_is_found_by_its_hash_and_size(void **state)
{
	start(1 << 20, 1 << 20);
	put('a', 1000);

	assert_true(has('a', 1000));
	assert_false(has('b', 1000));
}

static void
two_sessions_share_one_blob(void **state)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gpd_blob *first, *second;

	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	first = add(sha256, content('a', 10, sha256), 10);
	second = add(sha256, content('a', 10, sha256), 10);

	assert_ptr_equal(first, second);
	gpd_blob_unref(first);
	assert_ptr_equal(find(sha256, 10), second);
	gpd_blob_unref(second);
	gpd_blob_unref(second);
	assert_null(find(sha256, 10));
}

static void
sessions_together_have_a_limit_that_idle_images_do_not_count_for(void **state)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gpd_blob *held;
	struct gpd_code_place *other;

	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 2500, 0 });
	assert_int_equal(gpd_code_init(&code), 0);
	assert_int_equal(gpd_image_cache_account(&code), 0);
	code.max = 3000;
	put('a', 90);
	put('b', 90);
	/* Those that nobody holds go, if that helps. */
	assert_false(gpd_image_cache_could_take(3001, 0));
	assert_false(gpd_image_cache_take(3001, 0));
	assert_int_equal(gpd_code_used(&code), 180);
	assert_true(gpd_image_cache_could_take(3000, 0));
	assert_true(gpd_image_cache_take(3000, 0));
	gpd_image_cache_give(3000);
	assert_int_equal(gpd_code_used(&code), 0);
	assert_true(gpd_image_cache_take(2000, 0));
	assert_false(gpd_image_cache_take(1001, 0));
	held = gpd_image_cache_add(sha256, content('c', 2000, sha256), 2000);
	assert_false(gpd_image_cache_take(1001, 0));
	assert_false(gpd_image_cache_take(UINT64_MAX, 0));
	assert_true(gpd_image_cache_take(1000, 0));
	gpd_image_cache_give(1000);
	/* What comes twice counts once. */
	assert_true(gpd_image_cache_take(2000, 1000));
	assert_ptr_equal(gpd_image_cache_add(sha256, content('c', 2000, sha256), 2000), held);
	assert_int_equal(gpd_code_used(&code), 2000);
	gpd_blob_unref(held);
	gpd_blob_unref(held);
	assert_true(gpd_image_cache_take(3000, 0));
	gpd_image_cache_give(3000);

	/* Another worker's count, too, and are free when it is gone. */
	other = gpd_code_enter(&code, 1);
	assert_true(gpd_code_take(&code, other, 2500, 0));
	assert_false(gpd_image_cache_take(501, 0));
	assert_true(gpd_image_cache_take(501, 1));
	gpd_image_cache_give(501);
	/* Beyond the limit nothing is kept for nobody. */
	assert_true(gpd_image_cache_take(100, 0));
	held = gpd_image_cache_add(sha256, content('d', 100, sha256), 100);
	assert_true(gpd_code_take(&code, other, 600, 600));
	gpd_blob_unref(held);
	assert_int_equal(gpd_code_used(&code), 3100);
	gpd_code_leave(&code, 1);
	assert_true(gpd_image_cache_take(3000, 0));
	gpd_image_cache_give(3000);
	assert_int_equal(gpd_code_used(&code), 0);
	code.max = GPD_CODE_NO_LIMIT;
}

static struct gpd_blob *
held(char fill, size_t size, uint64_t more)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	void *bytes = content(fill, size, sha256);

	assert_true(gpd_image_cache_take(size, more));
	return gpd_image_cache_add(sha256, bytes, size);
}

/* As loaded libraries are, whose blobs are not idle. */
static void
what_is_kept_with_a_reference_is_held_by_nobody(void **state)
{
	struct gpd_image_name name = { .size = 100 };
	struct gpd_code_place *other;
	struct gpd_blob *blob;
	bool full;

	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 2500, 0 });
	memset(&code, 0, sizeof(code));
	assert_int_equal(gpd_code_init(&code), 0);
	assert_int_equal(gpd_image_cache_account(&code), 0);
	code.max = 1600;
	assert_int_equal(gpd_image_cache_part(), 100);
	other = gpd_code_enter(&code, 1);
	blob = held('a', 100, 0);
	memcpy(name.sha256, gpd_blob_sha256(blob), sizeof(name.sha256));
	gpd_blob_ref(blob);
	gpd_blob_keep(blob);
	assert_true(gpd_code_take(&code, other, 1500, 0));
	/* One reference is of who uses it. */
	assert_false(gpd_image_cache_take(100, 0));
	gpd_blob_unref(blob);
	assert_true(gpd_image_cache_take(100, 0));
	assert_true(gpd_image_cache_is_beyond());
	assert_int_equal(gpd_code_used(&code), 1700);

	/* The other one goes beyond the limit as well, and what is kept does not count for it; but
	 * to hold it again does. */
	assert_true(gpd_code_take(&code, other, 50, 50));
	assert_null(gpd_image_cache_find(&name, 50, &full));
	assert_true(full);
	assert_ptr_equal(gpd_image_cache_find(&name, 150, &full), blob);
	assert_false(full);
	assert_false(gpd_code_take(&code, other, 1, 150));
	gpd_blob_unref(blob);
	assert_true(gpd_code_take(&code, other, 1, 150));

	/* Without the keeper it is idle, and beyond the limit nothing is. */
	gpd_blob_drop(blob);
	assert_int_equal(gpd_code_used(&code), 1651);
	gpd_image_cache_give(100);
	assert_int_equal(gpd_code_used(&code), 1551);
	assert_false(gpd_image_cache_is_beyond());
	code.max = GPD_CODE_NO_LIMIT;
}

static void
memory_keeps_what_was_used_last(void **state)
{
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 2500, 0 });
	put('a', 1000);
	put('b', 1000);
	assert_true(has('a', 1000));
	put('c', 1000);

	assert_true(has('a', 1000));
	assert_false(has('b', 1000));
	assert_true(has('c', 1000));
}

static void
a_later_worker_finds_it_on_disk(void **state)
{
	start(1 << 20, 1 << 20);
	put('a', 100000);
	gpd_image_cache_stop();
	assert_int_equal(files(NULL), 1);

	start(1 << 20, 1 << 20);
	assert_true(has('a', 100000));
}

static void
a_damaged_file_is_thrown_away(void **state)
{
	char name[NAME_SIZE];
	int fd;

	start(1 << 20, 1 << 20);
	put('a', 1000);
	gpd_image_cache_stop();
	assert_int_equal(files(name), 1);
	fd = open(name, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, 500), 1);
	close(fd);

	start(1 << 20, 1 << 20);
	assert_false(has('a', 1000));
	assert_int_equal(files(NULL), 0);
}

static void
files_are_the_owners_alone(void **state)
{
	struct stat status;
	char name[NAME_SIZE];

	start(1 << 20, 1 << 20);
	put('a', 1000);
	gpd_image_cache_stop();

	files(name);
	assert_int_equal(stat(name, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

static void
the_disk_keeps_what_was_used_last(void **state)
{
	start(0, 2500);
	put('a', 1000);
	gpd_image_cache_stop();
	usleep(20000);
	start(0, 2500);
	put('b', 1000);
	gpd_image_cache_stop();
	usleep(20000);
	start(0, 2500);
	assert_true(has('a', 1000));
	usleep(20000);
	put('c', 1000);
	gpd_image_cache_stop();
	start(0, 2500);

	assert_int_equal(files(NULL), 2);
	assert_true(has('a', 1000));
	assert_false(has('b', 1000));
	assert_true(has('c', 1000));
}

static void
without_a_folder_there_is_only_memory(void **state)
{
	gpd_image_cache_start("/proc/none/of/this",
			      &(struct gpd_image_cache_limits){ 1 << 20, 1 << 20 });
	put('a', 1000);

	assert_true(has('a', 1000));
}

static struct gpd_blob *
text_blob(const char *text)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gp_image *image;
	void *flat, *bytes;
	size_t size;

	assert_int_equal(gp_image_create(text, &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &size), 0);
	gp_image_destroy(image);
	bytes = gpd_image_bytes_alloc(size);
	memcpy(bytes, flat, size);
	free(flat);
	EVP_Digest(bytes, size, sha256, NULL, EVP_sha256(), NULL);
	return add(sha256, bytes, size);
}

static void
code_that_prints_is_recognised(void **state)
{
	struct gpd_blob *prints, *silent;

	start(0, 0);
	prints = text_blob(".version 8.0\n call.uni (r), vprintf, (a, b);\n");
	silent = text_blob(".version 8.0\n ret;\n");

	assert_true(gpd_blob_uses(prints).print);
	assert_true(gpd_blob_uses(prints).print);
	assert_false(gpd_blob_uses(silent).print);
	gpd_blob_unref(prints);
	gpd_blob_unref(silent);
}

static void
code_that_allocates_is_recognised_by_the_whole_name(void **state)
{
	struct gpd_blob *allocates, *other;

	start(0, 0);
	allocates = text_blob(".version 8.0\n.extern .func (.param .b64 func_retval0) malloc\n(\n");
	other = text_blob(".version 8.0\n.visible .entry mallocate()\n call.uni my_malloc;\n");

	assert_true(gpd_blob_uses(allocates).malloc);
	assert_false(gpd_blob_uses(allocates).print);
	assert_false(gpd_blob_uses(other).malloc);
	gpd_blob_unref(allocates);
	gpd_blob_unref(other);
}

static void
code_with_variables_is_recognised(void **state)
{
	struct gpd_blob *counts, *plain;

	start(0, 0);
	counts = text_blob(".version 8.0\n.global .u32 counter;\n");
	plain = text_blob(".version 8.0\n ret;\n");

	assert_true(gpd_blob_uses(counts).state);
	assert_false(gpd_blob_uses(plain).state);
	gpd_blob_unref(counts);
	gpd_blob_unref(plain);
}

static void
bytes_that_are_no_image_are_told(void **state)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	const struct gp_image *image;
	struct gpd_blob *blob;

	start(0, 0);
	blob = add(sha256, content('a', 100, sha256), 100);

	assert_int_not_equal(gpd_blob_image(blob, &image), 0);
	assert_false(gpd_blob_uses(blob).print);
	assert_true(gpd_blob_uses(blob).state);
	gpd_blob_unref(blob);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_blob_is_found_by_its_hash_and_size),
		TEST(two_sessions_share_one_blob),
		TEST(sessions_together_have_a_limit_that_idle_images_do_not_count_for),
		TEST(what_is_kept_with_a_reference_is_held_by_nobody),
		TEST(memory_keeps_what_was_used_last),
		TEST(a_later_worker_finds_it_on_disk),
		TEST(a_damaged_file_is_thrown_away),
		TEST(files_are_the_owners_alone),
		TEST(the_disk_keeps_what_was_used_last),
		TEST(without_a_folder_there_is_only_memory),
		TEST(code_that_prints_is_recognised),
		TEST(code_that_allocates_is_recognised_by_the_whole_name),
		TEST(code_with_variables_is_recognised),
		TEST(bytes_that_are_no_image_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
