/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "image/fatbin.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/image_cache/image_disk.h"
#include "tests/test.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 400

static char dir[64];
static const _Atomic bool going_on;
static struct gpd_image_uploader alone;

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
	return gpd_image_cache_add(NULL, sha256, bytes, size);
}

static struct gpd_blob *
find(const uint8_t *sha256, size_t size)
{
	struct gpd_image_key key = { .size = size };
	struct gpd_blob *blob;

	memcpy(key.sha256, sha256, sizeof(key.sha256));
	blob = gpd_image_cache_get(&key, &alone, &going_on);
	gpd_image_cache_abandon_upload(&alone);
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

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(a_blob_is_found_by_its_hash_and_size)
{
	start(1 << 20, 1 << 20);
	put('a', 1000);

	assert_true(has('a', 1000));
	assert_false(has('b', 1000));
}

TEST(two_sessions_share_one_blob)
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

TEST(memory_keeps_what_was_used_last)
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

TEST(a_later_worker_finds_it_on_disk)
{
	start(1 << 20, 1 << 20);
	put('a', 100000);
	gpd_image_cache_stop();
	assert_int_equal(files(NULL), 1);

	start(1 << 20, 1 << 20);
	assert_true(has('a', 100000));
}

TEST(a_damaged_file_is_thrown_away)
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

TEST(files_are_the_owners_alone)
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

TEST(the_disk_keeps_what_was_used_last)
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
put_many(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		put((char)i, 10 + i / 256);
	gpd_image_cache_stop();
}

TEST(many_small_images_are_limited_by_their_number)
{
	gpd_image_disk_files_max = 64;
	start(0, 1 << 20);
	put_many(600);
	assert_in_range(files(NULL), 40, 64 + 64 / 4);
	gpd_image_disk_files_max = 65536;
}

TEST(a_folder_that_others_fill_is_within_its_limit_soon)
{
	start(0, 1 << 20);
	put_many(300);
	start(0, 1000);
	put_many(1);
	assert_in_range(files(NULL), 1, 100);
}

TEST(without_a_folder_there_is_only_memory)
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

TEST(code_that_prints_is_recognised)
{
	struct gpd_blob *prints, *silent;

	start(0, 0);
	prints = text_blob(".version 8.0\n call.uni (r), vprintf, (a, b);\n");
	silent = text_blob(".version 8.0\n ret;\n");

	assert_true(prints->uses.print);
	assert_true(prints->uses.print);
	assert_false(silent->uses.print);
	gpd_blob_unref(prints);
	gpd_blob_unref(silent);
}

TEST(code_that_allocates_is_recognised_by_the_whole_name)
{
	struct gpd_blob *allocates, *other;

	start(0, 0);
	allocates = text_blob(".version 8.0\n.extern .func (.param .b64 func_retval0) malloc\n(\n");
	other = text_blob(".version 8.0\n.visible .entry mallocate()\n call.uni my_malloc;\n");

	assert_true(allocates->uses.malloc);
	assert_false(allocates->uses.print);
	assert_false(other->uses.malloc);
	gpd_blob_unref(allocates);
	gpd_blob_unref(other);
}

TEST(code_with_variables_is_recognised)
{
	struct gpd_blob *counts, *plain;

	start(0, 0);
	counts = text_blob(".version 8.0\n.global .u32 counter;\n");
	plain = text_blob(".version 8.0\n ret;\n");

	assert_true(counts->uses.state);
	assert_false(plain->uses.state);
	gpd_blob_unref(counts);
	gpd_blob_unref(plain);
}

TEST(bytes_that_are_no_image_are_told)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gpd_blob *blob;

	start(0, 0);
	blob = add(sha256, content('a', 100, sha256), 100);

	assert_int_not_equal(blob->image_error, 0);
	assert_false(blob->uses.print);
	assert_true(blob->uses.state);
	gpd_blob_unref(blob);
}

/* An ELF file with the size that it declares and with invalid section names. */
TEST(machine_code_that_a_driver_would_stumble_over_is_told)
{
	const Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_machine = 190,
		.e_shoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 1,
	};
	const uint64_t length = sizeof(header) + sizeof(Elf64_Shdr);
	const uint32_t size = 48 + (uint32_t)length;
	const uint32_t flat[] = { 0x4d495047, 1 | GP_IMAGE_ELF << 16, 1, 0, size };
	uint8_t sha256[GPD_SHA256_SIZE];
	char *bytes = content(0, size, sha256);
	struct gpd_blob *blob;

	memcpy(bytes, flat, sizeof(flat));
	memcpy(bytes + 32, &length, sizeof(length));
	memcpy(bytes + 48, &header, sizeof(header));
	start(0, 0);
	blob = add(sha256, bytes, size);
	assert_int_equal(blob->image_error, -EBADMSG);
	assert_string_equal(
		blob->error_text,
		"an ELF for a GPU: its section names are not a string table, section 0");
	gpd_blob_unref(blob);
}

/* Sessions that start together. */
#define MS UINT64_C(1000000)
/* Adds and finds as a session of a tenant does. */
static bool
tenant_has(const char *tenant, char fill, size_t size)
{
	struct gpd_image_uploader bringer = { .tenant = tenant };
	struct gpd_image_key key = { .size = size };
	struct gpd_blob *blob;

	free(content(fill, size, key.sha256));
	blob = gpd_image_cache_get(&key, &bringer, &going_on);
	gpd_image_cache_abandon_upload(&bringer);
	gpd_blob_unref(blob);
	return blob;
}

static void
tenant_puts(const char *tenant, char fill, size_t size)
{
	struct gpd_image_uploader bringer = { .tenant = tenant };
	uint8_t sha256[GPD_SHA256_SIZE];
	void *bytes = content(fill, size, sha256);

	gpd_blob_unref(gpd_image_cache_add(&bringer, sha256, bytes, size));
}

TEST(a_tenant_gets_only_what_it_has_sent)
{
	start(1 << 20, 1 << 20);
	tenant_puts("a", 'a', 1000);
	assert_true(tenant_has("a", 'a', 1000));
	assert_false(tenant_has("b", 'a', 1000));
	assert_false(has('a', 1000));
	/* A later worker has the file of one tenant. */
	gpd_image_cache_stop();
	assert_int_equal(files(NULL), 1);
	start(1 << 20, 1 << 20);
	assert_false(tenant_has("b", 'a', 1000));
	assert_true(tenant_has("a", 'a', 1000));
	assert_false(tenant_has("b", 'a', 1000));
	tenant_puts("b", 'a', 1000);
	assert_true(tenant_has("b", 'a', 1000));
	assert_true(tenant_has("a", 'a', 1000));
	gpd_image_cache_stop();
	assert_int_equal(files(NULL), 2);
	/* What another tenant has in memory is found on disk. */
	start(1 << 20, 1 << 20);
	assert_true(tenant_has("a", 'a', 1000));
	assert_true(tenant_has("b", 'a', 1000));
}

TEST(the_cache_leaves_a_tenth_free_or_1_gib)
{
	assert_int_equal(gpd_image_disk_reserve(0), 0);
	assert_int_equal(gpd_image_disk_reserve(640 << 20), 64 << 20);
	assert_int_equal(gpd_image_disk_reserve((uint64_t)10 << 30), (uint64_t)1 << 30);
	assert_int_equal(gpd_image_disk_reserve(UINT64_MAX), (uint64_t)1 << 30);
}

#define WAITING 3

static const struct gpd_image_key ONE = { "one", 1000 }, OTHER = { "another", 1000 };
static struct gpd_image_uploader first, second, more[WAITING];

static int
setup_bringers(void **state)
{
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	memset(more, 0, sizeof(more));
	gpd_image_cache_stall_ns = gpd_image_cache_wait_ns = 60000 * MS;
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	return 0;
}

static int
teardown_bringers(void **state)
{
	gpd_image_cache_abandon_upload(&first);
	gpd_image_cache_abandon_upload(&second);
	for (int i = 0; i < WAITING; i++)
		gpd_image_cache_abandon_upload(&more[i]);
	gpd_image_cache_stop();
	return 0;
}

static struct gpd_blob *
get(const struct gpd_image_key *key, struct gpd_image_uploader *uploader)
{
	return gpd_image_cache_get(key, uploader, &going_on);
}

#define TEST_BRINGING(test) UNIT_TEST_WITH(test, setup_bringers, teardown_bringers)

TEST_BRINGING(nobody_waits_for_another_image)
{
	assert_null(get(&ONE, &first));
	assert_null(get(&OTHER, &second));
	/* Nor for itself, and there is one of each session at a time. */
	assert_null(get(&ONE, &first));
	assert_null(get(&OTHER, &second));
	gpd_image_cache_abandon_upload(&first);
	assert_null(get(&ONE, &second));
	assert_null(get(&OTHER, &first));
	assert_int_equal(first.waited_ns + second.waited_ns, 0);
}

static void *
get_one(void *arg)
{
	return get(&ONE, arg);
}

TEST_BRINGING(who_waits_gets_what_another_one_brings)
{
	struct gpd_blob *blob, *got;
	pthread_t threads[WAITING];

	assert_null(get(&ONE, &first));
	for (int i = 0; i < WAITING; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_one, &more[i]), 0);
	gp_sleep_ns(50 * MS);
	blob = gpd_image_cache_add(NULL, ONE.sha256, gpd_image_bytes_alloc(1000), 1000);
	assert_null(first.blob);
	for (int i = 0; i < WAITING; i++) {
		(void)pthread_join(threads[i], (void **)&got);
		assert_ptr_equal(got, blob);
		assert_null(more[i].blob);
		gpd_blob_unref(got);
	}
	gpd_blob_unref(blob);
}

static _Atomic unsigned int bringing, most, all;

static void *
bring_in_vain(void *arg)
{
	unsigned int now;

	assert_null(get(&ONE, arg));
	now = atomic_fetch_add(&bringing, 1) + 1;
	if (now > most)
		most = now;
	atomic_fetch_add(&all, 1);
	gp_sleep_ns(20 * MS);
	atomic_fetch_sub(&bringing, 1);
	gpd_image_cache_abandon_upload(arg);
	return NULL;
}

TEST_BRINGING(one_after_another_brings_it_if_it_does_not_come)
{
	pthread_t threads[WAITING];

	assert_null(get(&ONE, &first));
	for (int i = 0; i < WAITING; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, bring_in_vain, &more[i]), 0);
	gp_sleep_ns(100 * MS);
	assert_int_equal(bringing, 0);
	gpd_image_cache_abandon_upload(&first);
	for (int i = 0; i < WAITING; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(all, WAITING);
	assert_int_equal(most, 1);
}

TEST_BRINGING(who_stalls_is_not_waited_for)
{
	uint64_t begin = gp_now_ns();
	struct gpd_blob *blob;

	gpd_image_cache_stall_ns = 1500 * MS;
	assert_null(get(&ONE, &first));
	gp_sleep_ns(200 * MS);
	gpd_image_cache_upload_progress(&first);
	assert_null(get(&ONE, &second));
	assert_true(gp_now_ns() - begin >= 1700 * MS);
	/* Others wait for the second one, and the first may still bring it. */
	assert_null(first.blob);
	assert_non_null(second.blob);
	gpd_image_cache_upload_progress(&first);
	blob = gpd_image_cache_add(NULL, ONE.sha256, gpd_image_bytes_alloc(1000), 1000);
	assert_null(second.blob);
	gpd_image_cache_abandon_upload(&second);
	assert_ptr_equal(get(&ONE, &more[0]), blob);
	gpd_blob_unref(blob);
	gpd_blob_unref(blob);
}

TEST_BRINGING(nobody_waits_longer_than_told_or_than_his_session)
{
	const _Atomic bool closing = true;
	uint64_t begin = gp_now_ns(), waited;

	gpd_image_cache_wait_ns = 200 * MS;
	assert_null(get(&ONE, &first));
	assert_null(get(&ONE, &second));
	assert_true(gp_now_ns() - begin >= 200 * MS);
	/* That was all it does, for whatever image. */
	waited = second.waited_ns;
	gpd_image_cache_abandon_upload(&second);
	assert_null(get(&OTHER, &more[1]));
	assert_null(get(&OTHER, &second));
	assert_int_equal(second.waited_ns, waited);
	gpd_image_cache_wait_ns = 60000 * MS;
	assert_null(get(&ONE, &first));
	assert_null(gpd_image_cache_get(&ONE, &more[0], &closing));
	assert_true(gp_now_ns() - begin < 30000 * MS);
}

TEST_BRINGING(no_tenant_waits_for_another_one)
{
	struct gpd_blob *blob;

	first.tenant = "a";
	second.tenant = more[0].tenant = "b";
	assert_null(get(&ONE, &first));
	assert_null(get(&ONE, &second));
	assert_int_equal(second.waited_ns, 0);
	/* What the other tenant sends is its own. */
	blob = gpd_image_cache_add(&second, ONE.sha256, gpd_image_bytes_alloc(1000), 1000);
	assert_non_null(blob);
	assert_null(get(&ONE, &first));
	assert_ptr_equal(get(&ONE, &more[0]), blob);
	assert_int_equal(first.waited_ns + more[0].waited_ns, 0);
	assert_ptr_equal(gpd_image_cache_add(&first, ONE.sha256, gpd_image_bytes_alloc(1000), 1000),
			 blob);
	assert_ptr_equal(get(&ONE, &first), blob);
	for (int i = 0; i < 4; i++)
		gpd_blob_unref(blob);
}

UNIT_TEST_MAIN(NULL, NULL)
