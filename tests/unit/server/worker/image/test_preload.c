/* SPDX-License-Identifier: Apache-2.0 */
/* What a later worker loads of what an earlier one's sessions used. */
#include "gpd_calls.h"
#include "image/fatbin.h"
#include "protocol/image_info.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/image/image.h"
#include "server/worker/image/library.h"
#include "server/worker/image/preload.h"
#include "server/worker/session/sessions.h"
#include "tests/test.h"
#include "tests/unit/server/server_fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGE 8
#define MANY 100
#define PLAIN ".version 8.0\n.visible .entry k()\n"
#define OTHER ".version 8.1\n.visible .entry k()\n"
#define COUNTER ".version 8.2\n.global .u32 counter;\n"

static char dir[64];
static struct fake fake;
static unsigned int kernel_count;
static struct kernel {
	char name[8];
} kernels[MANY];
static char used[MANY * 8]; /* names of the functions that were loaded */
static _Atomic int loads;
static _Atomic CUresult load_result;

static CUresult
load_data(CUlibrary *library, const void *code, CUjit_option *options, void **values,
	  unsigned int count, CUlibraryOption *library_options, void **library_values,
	  unsigned int library_count)
{
	loads++;
	if (load_result != CUDA_SUCCESS)
		return load_result;
	*library = (CUlibrary)kernels;
	return CUDA_SUCCESS;
}

static CUresult
count_kernels(unsigned int *count, CUlibrary library)
{
	*count = kernel_count;
	return CUDA_SUCCESS;
}

static CUresult
enumerate(CUkernel *list, unsigned int count, CUlibrary library)
{
	for (unsigned int i = 0; i < count; i++)
		list[i] = (CUkernel)&kernels[i];
	return CUDA_SUCCESS;
}

static CUresult
get_name(const char **name, CUkernel kernel)
{
	*name = ((struct kernel *)kernel)->name;
	return CUDA_SUCCESS;
}

static CUresult
get_function(CUfunction *function, CUkernel kernel)
{
	strcat(strcat(used, ((struct kernel *)kernel)->name), " ");
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

static CUresult
get_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return CUDA_ERROR_INVALID_VALUE;
}

static void
start_worker(void)
{
	gpd_image_cache_start(dir, &(struct gpd_image_cache_limits){ 1 << 20, 1 << 20 });
	gpd_library_start(NULL);
	gpd_preload_restart();
	loads = 0;
	used[0] = 0;
}

static void
end_worker(void)
{
	gpd_quiet_jobs_wait();
	gpd_sessions.count = 0;
	gpd_library_stop();
	gpd_image_cache_stop();
}

static int
setup(void **state)
{
	strcpy(dir, "/tmp/gpupool-preload-XXXXXX");
	fake_create(&fake);
	gpd_driver.cuLibraryLoadData = load_data;
	gpd_driver.cuLibraryGetKernelCount = count_kernels;
	gpd_driver.cuLibraryEnumerateKernels = enumerate;
	gpd_driver.cuKernelGetName = get_name;
	gpd_driver.cuKernelGetFunction = get_function;
	gpd_driver.cuKernelGetParamInfo = get_param;
	for (int i = 0; i < MANY; i++)
		snprintf(kernels[i].name, sizeof(kernels[i].name), "k%02d", i);
	kernel_count = 2;
	load_result = CUDA_SUCCESS;
	if (!mkdtemp(dir))
		return -1;
	start_worker();
	return 0;
}

static int
teardown(void **state)
{
	char command[128];

	gpd_image_forget_session(&fake.session);
	end_worker();
	fake_libraries = 0;
	fake_destroy(&fake);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void
load(const char *text)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gp_args_gpImageLoad args = {
		.context = FAKE_CONTEXT,
		.image = IMAGE,
		.sha256 = { sha256, sizeof(sha256) },
	};
	struct gp_reply_gpImageLoad reply = { 0 };
	struct gp_image *image;
	void *flat;
	size_t size;

	assert_int_equal(gp_image_create(text, &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &size), 0);
	gp_image_destroy(image);
	EVP_Digest(flat, size, sha256, NULL, EVP_sha256(), NULL);
	args.size = size;
	fake.bulk = flat;
	fake.session.bulk_left = size;
	assert_int_equal(gpd_gpImageLoad(&fake.session, &args, &reply), CUDA_SUCCESS);
	free(flat);
	free((void *)reply.info.data);
	free((void *)reply.log.data);
}

static void
use_kernel(uint32_t index)
{
	CUfunction function;

	assert_int_equal(gpd_function_get(&fake.session, GP_KERNEL(IMAGE, index), &function),
			 CUDA_SUCCESS);
}

/* The session is gone, and what it used is noted; the file of the image may take its time. */
static void
leave(void)
{
	gpd_image_forget_session(&fake.session);
	gpd_quiet_jobs_wait();
}

static void
use(const char *text)
{
	load(text);
	leave();
}

/* The image is on disk when a worker has ended; what is used then is noted. */
static void
use_twice(const char *text)
{
	use(text);
	end_worker();
	start_worker();
	use(text);
}

static void
restart(void)
{
	end_worker();
	start_worker();
}

static void
preload(void)
{
	gpd_preload_idle();
	gpd_quiet_jobs_wait();
}

static void
a_later_worker_loads_what_was_used(void **state)
{
	use_twice(PLAIN);
	restart();
	preload();
	assert_int_equal(loads, 1);
	assert_string_equal(used, "k00 k01 ");

	load(PLAIN);
	use_kernel(1);
	assert_int_equal(loads, 1);
	assert_string_equal(used, "k00 k01 ");
}

static void
of_many_kernels_those_are_loaded_that_were_used(void **state)
{
	kernel_count = MANY;
	use_twice(PLAIN);
	load(PLAIN);
	use_kernel(70);
	use_kernel(7);
	leave();
	restart();
	preload();
	assert_string_equal(used, "k07 k70 ");

	/* What another worker's sessions use comes on top. */
	load(PLAIN);
	use_kernel(30);
	leave();
	restart();
	preload();
	assert_string_equal(used, "k07 k30 k70 ");
}

static void
what_a_worker_did_not_load_stays_noted(void **state)
{
	kernel_count = MANY;
	use_twice(PLAIN);
	load(PLAIN);
	use_kernel(70);
	leave();
	restart();
	load(PLAIN);
	use_kernel(7);
	leave();
	restart();
	preload();

	assert_int_equal(strlen(used), strlen("k07 k70 "));
	assert_non_null(strstr(used, "k07"));
	assert_non_null(strstr(used, "k70"));
}

static void
nothing_is_loaded_while_there_are_sessions(void **state)
{
	use_twice(PLAIN);
	restart();
	gpd_sessions.count = 1;
	preload();
	assert_int_equal(loads, 0);

	gpd_sessions.count = 0;
	preload();
	assert_int_equal(loads, 1);
	preload();
	assert_int_equal(loads, 1);
}

static void
code_with_variables_is_not_loaded(void **state)
{
	use_twice(COUNTER);
	restart();
	preload();

	assert_int_equal(loads, 0);
}

static void
all_images_that_were_used_are_loaded(void **state)
{
	use_twice(PLAIN);
	use_twice(OTHER);
	restart();
	preload();

	assert_int_equal(loads, 2);
}

/* The notes that there are; with each the path is left in `last`. */
static unsigned int
notes(char last[512])
{
	DIR *opened = opendir(dir);
	struct dirent *entry;
	unsigned int count = 0;

	while ((entry = readdir(opened))) {
		if (!strstr(entry->d_name, ".note"))
			continue;
		count++;
		snprintf(last, 512, "%s/%s", dir, entry->d_name);
	}
	closedir(opened);
	return count;
}

static void
write_note(const uint32_t *words, size_t size)
{
	struct gpd_image_name name;

	assert_int_equal(gpd_image_disk_recent(gpd_image_cache_disk(), &name, 1), 1);
	gpd_image_disk_write_note(gpd_image_cache_disk(), name.sha256, words, size);
}

static void
a_damaged_note_is_nothing(void **state)
{
	static const uint32_t empty[] = { 0, 1, 1 }, odd[] = { 2, 1, 1, 1 }, none[] = { 2, 0, 0 };
	static const struct {
		const uint32_t *words;
		size_t size;
	} notes[] = { { empty, sizeof(empty) },
		      { odd, sizeof(odd) },
		      { none, sizeof(none) },
		      { odd, 3 },
		      { odd, 4 } };

	use_twice(PLAIN);
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		restart();
		write_note(notes[i].words, notes[i].size);
		preload();
		assert_int_equal(loads, 0);
	}
}

static void
a_note_of_what_is_not_there_does_no_harm(void **state)
{
	/* For two devices, and more than there are. */
	static const uint32_t others[] = { 2, 0x00000000, 0xfffffffe, 0, 0, 0, 0, 0, 0, ~0u, ~0u };
	static const uint32_t many[] = { 3, 1, 1, 1 };

	use_twice(PLAIN);
	restart();
	write_note(others, sizeof(others));
	preload();
	assert_int_equal(loads, 1);
	/* Both when the image is loaded, and on the other device. */
	assert_string_equal(used, "k00 k01 k01 ");
	restart();
	write_note(many, sizeof(many));
	preload();
	assert_int_equal(loads, 1);
	assert_string_equal(used, "k00 k01 ");
}

static void
a_driver_that_is_lost_meanwhile_is_told(void **state)
{
	use_twice(PLAIN);
	restart();
	load_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	preload();

	assert_int_equal(gpd_devices.lost, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
an_image_with_which_a_worker_ended_is_not_tried_again(void **state)
{
	struct gpd_image_name name;

	use_twice(PLAIN);
	restart();
	assert_int_equal(gpd_image_disk_recent(gpd_image_cache_disk(), &name, 1), 1);
	/* As it is while it is loaded. */
	gpd_image_disk_drop_note(gpd_image_cache_disk(), name.sha256);
	preload();
	assert_int_equal(loads, 0);

	/* Until a session has used it. */
	use(PLAIN);
	restart();
	preload();
	assert_int_equal(loads, 1);
	restart();
	preload();
	assert_int_equal(loads, 1);
}

static void
a_note_goes_with_its_image(void **state)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	void *bytes = gpd_image_bytes_alloc(1000);
	char path[512];

	use_twice(PLAIN);
	end_worker();
	gpd_image_cache_start(dir, &(struct gpd_image_cache_limits){ 0, 1010 });
	usleep(20000);
	memset(bytes, 'a', 1000);
	EVP_Digest(bytes, 1000, sha256, NULL, EVP_sha256(), NULL);
	gpd_blob_unref(gpd_image_cache_add(sha256, bytes, 1000));
	gpd_image_cache_stop();

	assert_int_equal(notes(path), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_later_worker_loads_what_was_used),
		TEST(of_many_kernels_those_are_loaded_that_were_used),
		TEST(what_a_worker_did_not_load_stays_noted),
		TEST(nothing_is_loaded_while_there_are_sessions),
		TEST(code_with_variables_is_not_loaded),
		TEST(all_images_that_were_used_are_loaded),
		TEST(a_damaged_note_is_nothing),
		TEST(a_note_of_what_is_not_there_does_no_harm),
		TEST(a_driver_that_is_lost_meanwhile_is_told),
		TEST(an_image_with_which_a_worker_ended_is_not_tried_again),
		TEST(a_note_goes_with_its_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
