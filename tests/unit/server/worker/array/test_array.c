/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "server/worker/array/array.h"
#include "server/worker/array/texture.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/memory_internal.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME ((1u << 20) | 7)
#define OTHER ((1u << 20) | 8)
#define TEXTURE ((1u << 20) | 9)
#define MIB ((uint64_t)1 << 20)

static struct fake_session fake;
static atomic_bool held;

/* As if there were no moment at which the GPU is idle. */
static void
stand_still(void *none)
{
	struct timespec nap = { .tv_nsec = 100000 };

	while (held)
		(void)nanosleep(&nap, NULL);
}

static void
hold_quiet_jobs(void)
{
	held = true;
	gpd_quiesce_jobs_add(stand_still, NULL);
}

static void
let_quiet_jobs_go(void)
{
	held = false;
}

static int
setup(void **state)
{
	fake_session_create(&fake);
	assert_int_equal(gpd_staging_create(&fake.session), 0);
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	gpd_arrays_register(&fake.session);
	return 0;
}

static int
teardown(void **state)
{
	let_quiet_jobs_go();
	fake_session_run_markers(&fake, -1);
	gpd_textures_destroy(&fake.session);
	gpd_arrays_destroy(&fake.session);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	gpd_copy_destroy_all(&fake.session);
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	gpd_staging_destroy(&fake.session);
	fake_session_destroy(&fake);
	return fake_driver_arrays || fake_driver_textures;
}

/* So many rows of 1024 floats: 512 are 2 MiB. */
static struct gp_args_gpArrayCreate
floats(uint32_t name, uint64_t rows)
{
	return (struct gp_args_gpArrayCreate){
		.array = name,
		.width = 1024,
		.height = rows,
		.format = CU_AD_FORMAT_FLOAT,
		.channels = 1,
	};
}

static CUresult
create(uint32_t name, uint64_t rows)
{
	const struct gp_args_gpArrayCreate args = floats(name, rows);

	return gpd_gpArrayCreate(&fake.session, &args);
}

static CUresult
destroy(uint32_t name)
{
	return gpd_gpArrayDestroy(&fake.session, &(struct gp_args_gpArrayDestroy){ .array = name });
}

static CUresult
copy_in(uint32_t name, const struct gp_array_box *box, const uint8_t *bytes)
{
	const struct gp_args_gpArrayCopyIn args = {
		.stream = FAKE_STREAM,
		.array = name,
		.x = box->x,
		.y = box->y,
		.z = box->z,
		.width = box->width,
		.height = box->height,
		.depth = box->depth,
	};

	fake.bulk = bytes;
	fake.session.current.bulk_left = box->width * box->height * box->depth;
	return gpd_gpArrayCopyIn(&fake.session, &args);
}

static CUresult
copy_out(uint32_t name, const struct gp_array_box *box)
{
	const struct gp_args_gpArrayCopyOut args = {
		.stream = FAKE_STREAM,
		.array = name,
		.x = box->x,
		.y = box->y,
		.z = box->z,
		.width = box->width,
		.height = box->height,
		.depth = box->depth,
	};
	CUresult result;

	fake.data_size = 0;
	fake.data_before = 0;
	fake.session.current.request = 12;
	result = gpd_gpArrayCopyOut(&fake.session, &args);
	fake_session_run_markers(&fake, -1);
	return result;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(an_array_is_charged_as_the_driver_takes_it_and_is_empty)
{
	const struct gp_array_box all = { 0, 0, 0, 4096, 1000, 1 };

	assert_int_equal(create(NAME, 1000), CUDA_SUCCESS);
	/* 1000 rows are 1024 on the device. */
	assert_int_equal(fake_session_allocated(&fake, 0), 4 * MIB);
	assert_int_equal(copy_out(NAME, &all), GPD_LATER);
	assert_int_equal(fake.data_size, 4096 * 1000);
	for (size_t i = 0; i < fake.data_size; i++)
		assert_int_equal(fake.data[i], 0);
	assert_int_equal(destroy(NAME), CUDA_SUCCESS);
	assert_int_equal(destroy(NAME), CUDA_ERROR_INVALID_HANDLE);
}

TEST(small_arrays_share_a_page)
{
	struct gp_args_gpArrayCreate args = floats(NAME, 16);

	args.width = 16;
	for (uint32_t i = 0; i < 64; i++) {
		args.array = (1u << 20) | (i + 1);
		assert_int_equal(gpd_gpArrayCreate(&fake.session, &args), CUDA_SUCCESS);
	}
	assert_int_equal(fake_session_allocated(&fake, 0), 2 * MIB);
}

/* The driver's size: 32 arrays of this shape take 32 MiB, because two fit into a page. */
TEST(what_is_left_of_a_page_is_charged_to_those_in_it)
{
	struct gp_args_gpArrayCreate args = floats(NAME, 200);

	args.width = 800;
	assert_int_equal(gpd_gpArrayCreate(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&fake, 0), MIB);
}

TEST(memory_counts_until_the_driver_has_it_back)
{
	fake.session.account.entry->devices[0].memory_max = 4 * MIB;
	hold_quiet_jobs();
	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(create(OTHER, 1024), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(destroy(NAME), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&fake, 0), 2 * MIB);
	assert_int_equal(fake.session.memory->array_ops->leaving_size(&fake.session, 0), 2 * MIB);
	fake_session_run_markers(&fake, -1);
	/* Nothing of this session uses it, but the driver would hold up others. */
	assert_int_equal(fake_driver_count_calls("cuArrayDestroy"), 0);
	assert_int_equal(fake_session_allocated(&fake, 0), 2 * MIB);
	let_quiet_jobs_go();
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	assert_int_equal(fake_driver_count_calls("cuArrayDestroy"), 1);
}

TEST(an_allocation_waits_for_what_is_on_its_way_back)
{
	fake.session.account.entry->devices[0].memory_max = 4 * MIB;
	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(destroy(NAME), CUDA_SUCCESS);
	assert_int_equal(create(OTHER, 1024), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&fake, 0), 4 * MIB);
}

TEST(the_same_array_again_is_the_old_one)
{
	const struct gp_array_box corner = { 0, 0, 0, 4, 1, 1 };
	const uint8_t bytes[4] = { 1, 2, 3, 4 };

	fake.session.account.entry->devices[0].memory_max = 2 * MIB;
	hold_quiet_jobs();
	for (int i = 0; i < 10; i++) {
		assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
		assert_int_equal(copy_in(NAME, &corner, bytes), CUDA_SUCCESS);
		assert_int_equal(destroy(NAME), CUDA_SUCCESS);
		fake_session_run_markers(&fake, -1);
	}
	assert_int_equal(fake_driver_count_calls("cuArray3DCreate"), 1);
	assert_int_equal(fake_session_allocated(&fake, 0), 2 * MIB);
}

TEST(what_another_session_left_is_zeroed)
{
	const struct gp_array_box corner = { 4, 2, 0, 4, 1, 1 };
	const uint8_t bytes[4] = { 1, 2, 3, 4 }, zeros[4] = { 0 };

	hold_quiet_jobs();
	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(copy_in(NAME, &corner, bytes), CUDA_SUCCESS);
	assert_int_equal(copy_out(NAME, &corner), GPD_LATER);
	assert_memory_equal(fake.data, bytes, 4);
	/* The end of that session, and the next one. */
	gpd_arrays_destroy(&fake.session);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuArray3DCreate"), 1);
	assert_int_equal(copy_out(NAME, &corner), GPD_LATER);
	assert_memory_equal(fake.data, zeros, 4);
}

TEST(boxes_go_in_and_come_back_in_parts)
{
	struct gp_args_gpArrayCreate args = floats(NAME, 100);
	const struct gp_array_box box = { 8, 3, 1, 4000, 90, 7 };
	size_t size = 4000 * 90 * 7;
	uint8_t *bytes = malloc(size);

	args.depth = 8;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4000);
	assert_int_equal(gpd_gpArrayCreate(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(copy_in(NAME, &box, bytes), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(copy_out(NAME, &box), GPD_LATER);
	assert_int_equal(fake.data_size, size);
	assert_memory_equal(fake.data, bytes, size);
	free(bytes);
}

TEST(mipmapped_arrays_have_levels_of_their_own)
{
	struct gp_args_gpArrayCreate args = floats(NAME, 16);
	struct gp_args_gpArrayCopyIn copy = { .stream = FAKE_STREAM,
					      .array = NAME,
					      .level = 2,
					      .width = 64,
					      .height = 4,
					      .depth = 1 };
	const uint8_t bytes[320] = { 9 };

	args.width = 64;
	args.levels = 3;
	assert_int_equal(gpd_gpArrayCreate(&fake.session, &args), CUDA_SUCCESS);
	fake.bulk = bytes;
	fake.session.current.bulk_left = 256;
	assert_int_equal(gpd_gpArrayCopyIn(&fake.session, &copy), CUDA_SUCCESS);
	copy.height = 5;
	fake.session.current.bulk_left = 320;
	fake.bulk = bytes;
	assert_int_equal(gpd_gpArrayCopyIn(&fake.session, &copy), CUDA_ERROR_INVALID_VALUE);
	copy.level = 3;
	copy.height = 1;
	fake.bulk = bytes;
	fake.session.current.bulk_left = 64;
	assert_int_equal(gpd_gpArrayCopyIn(&fake.session, &copy), CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake.violation, "");
}

TEST(hostile_descriptions_do_not_reach_the_driver)
{
	const struct gp_args_gpArrayCreate good = floats(NAME, 16);
	struct gp_args_gpArrayCreate bad[] = { good, good, good, good, good,
					       good, good, good, good, good };
	CUresult want[] = { CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE,
			    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE,
			    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE,
			    CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_DEVICE,
			    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE };

	bad[0].width = 0;
	bad[1].width = UINT64_MAX;
	bad[2].height = UINT64_MAX / 4;
	bad[3].format = 0x1234;
	bad[4].channels = UINT32_MAX;
	bad[5].flags = 0x80000000;
	bad[6].flags = CUDA_ARRAY3D_SPARSE;
	bad[7].device = 99;
	bad[8].levels = UINT32_MAX;
	bad[9].height = 0;
	bad[9].depth = 3;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gpd_gpArrayCreate(&fake.session, &bad[i]), want[i]);
	assert_int_equal(fake_driver_count_calls("cuArray3DCreate"), 0);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
}

TEST(boxes_outside_an_array_do_not_reach_the_driver)
{
	static const struct gp_array_box bad[] = {
		{ 0, 0, 0, 4100, 1, 1 },
		{ 4, 0, 0, 4096, 1, 1 },
		{ UINT64_MAX - 3, 0, 0, 8, 1, 1 },
		{ 0, 16, 0, 4, 1, 1 },
		{ 0, UINT64_MAX, 0, 4, 2, 1 },
		{ 0, 0, 1, 4, 1, 1 },
		{ 0, 0, 0, 4, 1, 2 },
		{ 2, 0, 0, 4, 1, 1 },
		{ 0, 0, 0, 6, 1, 1 },
		{ 0, 0, 0, 0, 1, 1 },
	};

	assert_int_equal(create(NAME, 16), CUDA_SUCCESS);
	fake_driver_clear_calls();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gp_args_gpArrayCopy copy = {
			.stream = FAKE_STREAM,
			.dst_array = NAME,
			.dst_x = bad[i].x,
			.dst_y = bad[i].y,
			.dst_z = bad[i].z,
			.src_array = NAME,
			.width = bad[i].width,
			.height = bad[i].height,
			.depth = bad[i].depth,
		};

		assert_int_equal(copy_out(NAME, &bad[i]), CUDA_ERROR_INVALID_VALUE);
		if (bad[i].width)
			assert_int_equal(gpd_gpArrayCopy(&fake.session, &copy),
					 CUDA_ERROR_INVALID_VALUE);
	}
	assert_int_equal(copy_out(OTHER, &(struct gp_array_box){ 0, 0, 0, 4, 1, 1 }),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_driver_count_calls("cuMemcpy3D"), 0);
}

TEST(memory_beside_an_array_is_checked)
{
	struct gp_args_gpArrayCopy copy = {
		.stream = FAKE_STREAM,
		.dst_array = NAME,
		.src = FAKE_WINDOW,
		.src_pitch = 4096,
		.src_slice = 4096 * 16,
		.width = 4096,
		.height = 16,
		.depth = 1,
	};

	assert_int_equal(create(NAME, 16), CUDA_SUCCESS);
	assert_int_equal(gpd_gpArrayCopy(&fake.session, &copy), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_gpMemoryMap(&fake.session,
					 &(struct gp_args_gpMemoryMap){ .address = FAKE_WINDOW,
									.size = FAKE_GRANULE }),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_gpArrayCopy(&fake.session, &copy), CUDA_SUCCESS);
	copy.src_pitch = UINT64_MAX;
	assert_int_equal(gpd_gpArrayCopy(&fake.session, &copy), CUDA_ERROR_INVALID_VALUE);
	copy.src_pitch = 4096;
	copy.src = FAKE_WINDOW + FAKE_GRANULE - 4096;
	assert_int_equal(gpd_gpArrayCopy(&fake.session, &copy), CUDA_ERROR_INVALID_VALUE);
}

static struct gp_args_gpTextureCreate
texture_of(uint32_t array)
{
	return (struct gp_args_gpTextureCreate){ .texture = TEXTURE, .array = array };
}

TEST(an_array_stays_as_long_as_a_texture_is_of_it)
{
	struct gp_args_gpTextureCreate args = texture_of(NAME);
	struct gp_reply_gpTextureCreate reply;

	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.object, 0x1001);
	assert_int_equal(destroy(NAME), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_arrays, 1);
	assert_int_equal(fake_session_allocated(&fake, 0), 2 * MIB);
	assert_int_equal(
		gpd_gpTextureDestroy(&fake.session,
				     &(struct gp_args_gpTextureDestroy){ .texture = TEXTURE }),
		CUDA_SUCCESS);
	assert_int_equal(fake_driver_textures, 1);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_textures, 0);
	assert_int_equal(fake_driver_arrays, 0);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
}

TEST(a_session_that_ends_leaves_nothing)
{
	struct gp_args_gpTextureCreate args = texture_of(NAME);
	struct gp_reply_gpTextureCreate reply;

	assert_int_equal(create(NAME, 512), CUDA_SUCCESS);
	assert_int_equal(create(OTHER, 512), CUDA_SUCCESS);
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply), CUDA_SUCCESS);
	args.texture = TEXTURE + 1;
	args.array = OTHER;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(destroy(NAME), CUDA_SUCCESS);
	gpd_textures_destroy(&fake.session);
	gpd_arrays_destroy(&fake.session);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_arrays, 0);
	assert_int_equal(fake_driver_textures, 0);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
}

TEST(textures_of_what_is_not_the_sessions_are_refused)
{
	struct gp_args_gpTextureCreate args = texture_of(OTHER);
	struct gp_reply_gpTextureCreate reply;
	struct gp_reply_gpSurfaceCreate surface;

	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(create(NAME, 16), CUDA_SUCCESS);
	args = texture_of(NAME);
	args.level = 1;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.level = 0;
	args.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.type = CU_RESOURCE_TYPE_LINEAR;
	args.format = CU_AD_FORMAT_FLOAT;
	args.channels = 1;
	args.address = FAKE_WINDOW;
	args.width = 4096;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.type = CU_RESOURCE_TYPE_PITCH2D;
	args.height = UINT64_MAX;
	args.width = UINT64_MAX / 2;
	args.pitch = 7;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.type = 77;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_gpSurfaceCreate(&fake.session,
					     &(struct gp_args_gpSurfaceCreate){ .surface = TEXTURE,
										.array = OTHER },
					     &surface),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_driver_textures, 0);
	/* The flags of the array do not matter. */
	assert_int_equal(gpd_gpSurfaceCreate(&fake.session,
					     &(struct gp_args_gpSurfaceCreate){ .surface = TEXTURE,
										.array = NAME },
					     &surface),
			 CUDA_SUCCESS);
	gpd_textures_destroy(&fake.session);
}

TEST(a_view_stays_within_the_array)
{
	struct gp_args_gpTextureCreate args = texture_of(NAME);
	struct gp_reply_gpTextureCreate reply;

	assert_int_equal(create(NAME, 16), CUDA_SUCCESS);
	args.has_view = 1;
	args.view_last_level = 1;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.view_last_level = 0;
	args.view_last_layer = 1;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.view_last_layer = 0;
	args.address_mode_x = 4;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	args.address_mode_x = 3;
	assert_int_equal(gpd_gpTextureCreate(&fake.session, &args, &reply), CUDA_SUCCESS);
}

UNIT_TEST_MAIN(NULL, NULL)
