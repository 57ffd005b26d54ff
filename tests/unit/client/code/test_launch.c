/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, settings of kernels and questions about them: what is sent, and what is waited for. */
#include "client/code/function.h"
#include "client/code/image.h"
#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <string.h>

#define SHARED_DEFAULT 49152
#define SHARED_STATIC 1024
#define SHARED_MOST (227 << 10)
#define NUMBER 3 /* what the daemon answers */
#define FIRST_VALUE 700

struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
	struct gpc_image image;
	struct gp_image_info info;
	struct gp_kernel_info kernels[2];
	CUfunction kernel, other;
	atomic_int refusal;          /* of launches that are waited for */
	atomic_uint fewer;           /* answers than questions */
	atomic_uint multiprocessors; /* 0: the daemon does not say */
	atomic_bool share; /* the next answer comes behind a note: the share has changed */
	atomic_bool late;  /* the next answer comes behind a note: a launch was refused */
};

static struct fixture fixture;

static void
note_share(struct fake_daemon *daemon)
{
	const uint32_t fields[2] = { 0 };
	const struct gp_header header = { .size = sizeof(header) + sizeof(fields),
					  .call = GP_NOTE_SHARE };

	fake_send(daemon, &header, fields, sizeof(fields), NULL, 0);
}

/* One, two, three … blocks of the sizes in question, largest first. */
static void
answer_blocks(struct fake_daemon *daemon, const struct gp_header *header, size_t size)
{
	/* Before the questions: kernel, flags, their size, padding to 8. */
	const uint32_t count = (uint32_t)((size - 16) / sizeof(struct gp_occupancy_question));
	uint32_t blocks[GP_OCCUPANCY_QUESTIONS_MAX];
	uint64_t fields[GP_OCCUPANCY_QUESTIONS_MAX];
	struct gp_enc enc;

	for (uint32_t i = 0; i < count; i++)
		blocks[i] = i + 1;
	gp_enc_init(&enc, fields, sizeof(fields));
	gp_enc_bytes(&enc, (struct gp_bytes){ blocks, (count - atomic_load(&fixture.fewer)) *
							      sizeof(blocks[0]) });
	gp_enc_pad(&enc);
	fake_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
}

/* All but the version of PTX. */
static void
answer_attributes(struct fake_daemon *daemon, const struct gp_header *header)
{
	const uint32_t known = 0xffff & ~(1u << CU_FUNC_ATTRIBUTE_PTX_VERSION);
	uint64_t fields[2 + GP_KERNEL_ATTRIBUTES];
	uint32_t values[GP_KERNEL_ATTRIBUTES];
	struct gp_enc enc;

	for (uint32_t i = 0; i < GP_KERNEL_ATTRIBUTES; i++)
		values[i] = FIRST_VALUE + i;
	gp_enc_init(&enc, fields, sizeof(fields));
	gp_enc_u32(&enc, known);
	gp_enc_bytes(&enc, (struct gp_bytes){ values, sizeof(values) });
	gp_enc_pad(&enc);
	fake_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
}

/* 100 of one block, 99 of two, and more than 16 blocks are refused. */
static void
answer_clusters(struct fake_daemon *daemon, const struct gp_header *header)
{
	struct gp_occupancy_clusters answers[32];
	uint64_t fields[64];
	struct gp_enc enc;

	for (uint32_t i = 0; i < 32; i++)
		answers[i] = (struct gp_occupancy_clusters){
			i < 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE, 100 - i
		};
	gp_enc_init(&enc, fields, sizeof(fields));
	gp_enc_bytes(&enc, (struct gp_bytes){ answers, (32 - atomic_load(&fixture.fewer)) *
							       sizeof(answers[0]) });
	gp_enc_pad(&enc);
	fake_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
}

static int
answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	const uint64_t number = NUMBER;
	CUresult result = CUDA_SUCCESS;
	bool has_number = false;

	if (!header->request)
		return 0;
	if (atomic_exchange(&fixture.late, false))
		fake_note_error_of(daemon, CUDA_ERROR_INVALID_CLUSTER_SIZE, false,
				   GP_CALL_gpLaunch);
	if (atomic_exchange(&fixture.share, false))
		note_share(daemon);
	if (header->call == GP_CALL_gpLaunchChecked)
		result = (CUresult)atomic_load(&fixture.refusal);
	if (header->call == GP_CALL_gpOccupancyBlocks) {
		answer_blocks(daemon, header, size);
		return 0;
	}
	if (header->call == GP_CALL_gpFunctionAttributes) {
		answer_attributes(daemon, header);
		return 0;
	}
	if (header->call == GP_CALL_gpResource) {
		const uint32_t words[4] = { htole32(atomic_load(&fixture.multiprocessors)) };

		fake_reply(daemon, header, words[0] ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
			   words, words[0] ? sizeof(words) : 0);
		return 0;
	}
	if (header->call == GP_CALL_gpOccupancyClusterSizes) {
		answer_clusters(daemon, header);
		return 0;
	}
	if (header->call == GP_CALL_cuFuncGetAttribute ||
	    header->call == GP_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags ||
	    header->call == GP_CALL_cuOccupancyAvailableDynamicSMemPerBlock ||
	    header->call == GP_CALL_gpOccupancyCluster)
		has_number = true;
	fake_reply(daemon, header, result, &number, has_number ? sizeof(number) : 0);
	return 0;
}

static void
make_devices(void)
{
	static int32_t attributes[CU_DEVICE_ATTRIBUTE_MAX];
	static uint8_t uuids[2][16] = { { 1, 2 }, { 3, 4 } };
	struct gpc_device_source sources[2];
	Gpupool__Device devices[2];

	attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
	attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 10;
	attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048;
	attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	for (int i = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X; i <= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
	     i++)
		attributes[i] = 1024;
	attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = SHARED_MOST;
	for (int i = 0; i < 2; i++) {
		gpupool__device__init(&devices[i]);
		devices[i].name = (char *)"one of two";
		devices[i].uuid = (ProtobufCBinaryData){ 16, uuids[i] };
		devices[i].attributes = attributes;
		devices[i].n_attributes = 140;
		devices[i].ordinal = i;
		sources[i] = (struct gpc_device_source){ .device = &devices[i],
							 .session = fixture.session };
	}
	assert_int_equal(gpc_devices_create(sources, 2), 0);
}

static struct gp_kernel_info
kernel_info(const char *name)
{
	struct gp_kernel_info info = { .name = name };

	info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	info.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = SHARED_STATIC;
	info.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = SHARED_DEFAULT;
	info.attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
	info.attributes_known = 1u << CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK |
				1u << CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES |
				1u << CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES |
				1u << CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
	return info;
}

static void
make_image(void)
{
	struct gpc_image *image = &fixture.image;

	fixture.kernels[0] = kernel_info("kernel");
	fixture.kernels[1] = kernel_info("other");
	fixture.info = (struct gp_image_info){ 2, fixture.kernels };
	image->device = gpc_device_get(0);
	image->info = &fixture.info;
	image->kernels = (struct gpc_function_list){ .kind = GPC_KIND_KERNEL, .image = image };
	(void)pthread_mutex_init(&image->lock, NULL);
	assert_int_equal(gpc_handle_add(GPC_KIND_IMAGE, &image->handle), 0);
	assert_true(gpc_function_list_init(&image->kernels));
	fixture.kernel = (CUfunction)gpc_function_list_get(&image->kernels, 0)->handle.token;
	fixture.other = (CUfunction)gpc_function_list_get(&image->kernels, 1)->handle.token;
}

static int
set_up(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.daemon.answer = answer;
	fake_daemon_start(&fixture.daemon, "tcp", 100, &fixture.session);
	gpc_context_parts_set();
	make_devices();
	make_image();
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(gpc_device_get(0)->primary->handle.token),
			 CUDA_SUCCESS);
	return 0;
}

static int
tear_down(void **state)
{
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	gpc_function_list_fini(&fixture.image.kernels);
	gpc_answers_fini(&fixture.image.answers);
	gpc_image_settings_free(fixture.image.settings);
	gpc_handle_remove(&fixture.image.handle);
	(void)pthread_mutex_destroy(&fixture.image.lock);
	fake_daemon_stop(&fixture.daemon, fixture.session);
	gpc_devices_destroy();
	return 0;
}

/* How many of these the daemon has got, once it has got all that was posted before. */
static size_t
received(uint16_t call)
{
	struct gp_args_gpFence args = { 0 };
	size_t count = 0;

	assert_int_equal(gpc_wait_gpFence(NULL, &args), CUDA_SUCCESS);
	for (size_t i = 0; i < atomic_load(&fixture.daemon.count); i++)
		count += fixture.daemon.records[i].header.call == call;
	return count;
}

static CUresult
launch_clusters(unsigned int cluster, unsigned int grid, unsigned int block)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
					.value.clusterDim = { cluster, 1, 1 } };
	const CUlaunchConfig config = { .gridDimX = grid,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = block,
					.blockDimY = 1,
					.blockDimZ = 1,
					.attrs = &attribute,
					.numAttrs = 1 };

	return gpc_cuLaunchKernelEx(&config, fixture.kernel, NULL, NULL);
}

static CUresult
launch_together(CUfunction kernel, unsigned int grid)
{
	return gpc_cuLaunchCooperativeKernel(kernel, grid, 1, 1, 64, 1, 1, 0, NULL, NULL);
}

static CUresult
launch_shared(unsigned int shared)
{
	return gpc_cuLaunchKernel(fixture.kernel, 1, 1, 1, 32, 1, 1, shared, NULL, NULL, NULL);
}

static CUresult
set(CUfunction_attribute attribute, int value)
{
	return gpc_cuFuncSetAttribute(fixture.kernel, attribute, value);
}

static CUresult
allow_shared(int value)
{
	return set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
}

static void
shape_of_clusters_is_asked_once(void **state)
{
	for (unsigned int grid = 2; grid <= 200; grid += 2)
		assert_int_equal(launch_clusters(2, grid, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 1);
	assert_int_equal(received(GP_CALL_gpLaunch), 99);
	/* Another block, another cluster: another question. */
	assert_int_equal(launch_clusters(2, 2, 128), CUDA_SUCCESS);
	assert_int_equal(launch_clusters(4, 4, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 3);
}

static void
grid_that_is_no_whole_clusters_is_asked(void **state)
{
	assert_int_equal(launch_clusters(2, 4, 64), CUDA_SUCCESS);
	atomic_store(&fixture.refusal, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(launch_clusters(2, 5, 64), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(launch_clusters(2, 6, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
}

static void
refused_shape_is_asked_again(void **state)
{
	atomic_store(&fixture.refusal, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch_clusters(16, 16, 64), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	atomic_store(&fixture.refusal, CUDA_SUCCESS);
	assert_int_equal(launch_clusters(16, 16, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 4);
	assert_int_equal(received(GP_CALL_gpLaunch), 0);
}

static void
cooperative_launch_is_asked_for_more_blocks_than_were_accepted(void **state)
{
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 3), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 1);
	atomic_store(&fixture.refusal, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(launch_together(fixture.kernel, 9),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.other, 1),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 3);
	assert_int_equal(received(GP_CALL_gpLaunch), 3);
}

/* As many as fit on a multiprocessor are asked once, with the multiprocessors. */
static void
cooperative_launch_of_any_grid_that_fits_is_asked_once(void **state)
{
	const uint16_t blocks = GP_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;

	atomic_store(&fixture.multiprocessors, 5);
	for (unsigned int grid = 1; grid <= 5 * NUMBER; grid++)
		assert_int_equal(launch_together(fixture.kernel, grid), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 0);
	assert_int_equal(received(GP_CALL_gpLaunch), 5 * NUMBER);
	assert_int_equal(received(GP_CALL_gpResource), 1);
	assert_int_equal(received(blocks), 1);
	/* What is too large the daemon refuses itself. */
	atomic_store(&fixture.refusal, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(launch_together(fixture.kernel, 5 * NUMBER + 1),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 1);
	/* Another kernel of the image has the same multiprocessors. */
	assert_int_equal(launch_together(fixture.other, 5 * NUMBER), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpResource), 1);
	assert_int_equal(received(blocks), 2);
	/* With another share all is asked again. */
	atomic_store(&fixture.multiprocessors, 2);
	atomic_store(&fixture.share, true);
	assert_int_equal(received(GP_CALL_gpLaunch), 5 * NUMBER + 1);
	assert_int_equal(launch_together(fixture.kernel, 2 * NUMBER), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 2 * NUMBER + 1),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(received(GP_CALL_gpResource), 2);
}

/* The share has become smaller, say. */
static void
late_refusal_is_told_once_and_launches_are_asked_again(void **state)
{
	struct gp_args_gpFence fence = { 0 };

	assert_int_equal(launch_clusters(2, 2, 64), CUDA_SUCCESS);
	assert_int_equal(launch_clusters(2, 2, 64), CUDA_SUCCESS);
	atomic_store(&fixture.late, true);
	assert_int_equal(gpc_wait_gpFence(NULL, &fence), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(gpc_wait_gpFence(NULL, &fence), CUDA_SUCCESS);
	atomic_store(&fixture.refusal, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(launch_clusters(2, 2, 64), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
}

static void
attributes_that_nothing_hangs_on_are_never_asked(void **state)
{
	CUlaunchAttribute attributes[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		  .value.programmaticStreamSerializationAllowed = 1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN },
		{ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 0 },
		{ .id = CU_LAUNCH_ATTRIBUTE_IGNORE },
	};
	CUlaunchConfig config = { .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 32,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .attrs = attributes,
				  .numAttrs = 5 };

	assert_int_equal(gpc_cuLaunchKernelEx(&config, fixture.kernel, NULL, NULL), CUDA_SUCCESS);
	attributes[4].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	assert_int_equal(gpc_cuLaunchKernelEx(&config, fixture.kernel, NULL, NULL),
			 CUDA_ERROR_NOT_SUPPORTED);
	config.attrs = NULL;
	assert_int_equal(gpc_cuLaunchKernelEx(&config, fixture.kernel, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(received(GP_CALL_gpLaunch), 1);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 0);
}

static void
dynamic_shared_memory_is_allowed_without_waiting(void **state)
{
	int value;

	assert_int_equal(launch_shared(SHARED_DEFAULT + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC), CUDA_SUCCESS);
	assert_int_equal(launch_shared(SHARED_DEFAULT + 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuFuncGetAttribute(&value,
						CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
						fixture.kernel),
			 CUDA_SUCCESS);
	assert_int_equal(value, SHARED_MOST - SHARED_STATIC);
	/* The same again is nothing. */
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC), CUDA_SUCCESS);
	assert_int_equal(allow_shared(1000), CUDA_SUCCESS);
	assert_int_equal(launch_shared(1001), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 0);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 0);
}

static void
what_may_be_refused_is_waited_for(void **state)
{
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC + 1), CUDA_SUCCESS);
	assert_int_equal(allow_shared(-1), CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
			 CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2), CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 5);
	/* But not twice. */
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 5);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 0);
}

static void
what_libraries_set_is_posted(void **state)
{
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
			 CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 0);
}

static void
attributes_are_asked_together(void **state)
{
	int value;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, fixture.kernel),
			CUDA_SUCCESS);
		assert_int_equal(value, FIRST_VALUE + CU_FUNC_ATTRIBUTE_NUM_REGS);
		assert_int_equal(gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
							fixture.kernel),
				 CUDA_SUCCESS);
		assert_int_equal(value, FIRST_VALUE + CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
	}
	assert_int_equal(received(GP_CALL_gpFunctionAttributes), 1);
	/* The driver does not say it. */
	assert_int_equal(
		gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, fixture.kernel),
		CUDA_SUCCESS);
	assert_int_equal(value, NUMBER);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 1);
}

static void
older_daemon_is_asked(void **state)
{
	struct gpc_session_facts *facts =
		(struct gpc_session_facts *)gpc_session_facts(fixture.session);

	facts->unknown_calls[GP_CALL_gpFunctionAttribute / 8] |=
		(uint8_t)(1u << GP_CALL_gpFunctionAttribute % 8);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 1);
}

/* Of a library that is used on two devices of one daemon. */
static void
device_that_differs_is_asked(void **state)
{
	const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CUkernel kernel = (CUkernel)fixture.kernel;
	int value;

	assert_int_equal(gpc_cuKernelSetAttribute(dynamic, 60000, kernel, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuKernelSetAttribute(dynamic, 60000, kernel, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(gpc_cuKernelGetAttribute(&value, dynamic, kernel, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuKernelGetAttribute(&value, dynamic, kernel, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 2);
}

static void
settings_go_with_the_context(void **state)
{
	CUcontext context;

	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
}

static void
setting_is_part_of_the_question(void **state)
{
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
	assert_int_equal(allow_shared(SHARED_DEFAULT), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
	assert_int_equal(gpc_cuFuncSetCacheConfig(fixture.kernel, CU_FUNC_CACHE_PREFER_L1),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuFuncSetCacheConfig(fixture.kernel, (CUfunc_cache)4),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 3);
}

static CUresult
ask_blocks(int size, size_t shared, int *blocks)
{
	return gpc_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, fixture.kernel, size,
							       shared);
}

static void
occupancy_is_asked_once(void **state)
{
	size_t bytes;
	int blocks;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask_blocks(64, 0, &blocks), CUDA_SUCCESS);
		assert_int_equal(blocks, NUMBER);
		assert_int_equal(ask_blocks(64, (size_t)1 << 32, &blocks), CUDA_SUCCESS);
		assert_int_equal(ask_blocks(128, 0, &blocks), CUDA_SUCCESS);
		assert_int_equal(
			gpc_cuOccupancyAvailableDynamicSMemPerBlock(&bytes, fixture.kernel, 2, 64),
			CUDA_SUCCESS);
		assert_int_equal(bytes, NUMBER);
	}
	assert_int_equal(ask_blocks(64, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(received(GP_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags), 3);
	assert_int_equal(received(GP_CALL_cuOccupancyAvailableDynamicSMemPerBlock), 1);
}

static void
best_block_size_is_one_question(void **state)
{
	int grid, block, blocks;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(gpc_cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.kernel,
								      NULL, 0, 0),
				 CUDA_SUCCESS);
		/* Of 32 sizes: n blocks of 1024 - 32 (n - 1) threads. */
		assert_int_equal(block, 1024 - 32 * 15);
		assert_int_equal(grid, 16 * 10);
	}
	assert_int_equal(received(GP_CALL_gpOccupancyBlocks), 1);
	/* What it brought answers others. */
	assert_int_equal(ask_blocks(992, 0, &blocks), CUDA_SUCCESS);
	assert_int_equal(blocks, 2);
	assert_int_equal(
		gpc_cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.kernel, NULL, 0, 64),
		CUDA_SUCCESS);
	assert_int_equal(block, 64);
	assert_int_equal(received(GP_CALL_gpOccupancyBlocks), 1);
	assert_int_equal(
		gpc_cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.kernel, NULL, 0, 40),
		CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpOccupancyBlocks), 2);
	assert_int_equal(received(GP_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags), 0);
}

static void
too_few_answers_end_the_session(void **state)
{
	int grid, block;

	atomic_store(&fixture.fewer, 1);
	assert_int_equal(
		gpc_cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.kernel, NULL, 0, 0),
		CUDA_ERROR_SYSTEM_NOT_READY);
	assert_int_equal(gpc_session_status(fixture.session), CUDA_ERROR_SYSTEM_NOT_READY);
}

static void
clusters_are_asked_again_when_the_share_changes(void **state)
{
	const CUlaunchConfig config = { .gridDimX = 4,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = 64,
					.blockDimY = 1,
					.blockDimZ = 1 };
	struct gp_args_gpFence fence = { 0 };
	int clusters, blocks;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			gpc_cuOccupancyMaxActiveClusters(&clusters, fixture.kernel, &config),
			CUDA_SUCCESS);
		assert_int_equal(clusters, NUMBER);
	}
	assert_int_equal(gpc_cuOccupancyMaxPotentialClusterSize(&clusters, fixture.kernel, &config),
			 CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 2);
	assert_int_equal(received(GP_CALL_gpShareWatch), 1);
	atomic_store(&fixture.share, true);
	assert_int_equal(gpc_wait_gpFence(NULL, &fence), CUDA_SUCCESS);
	assert_int_equal(gpc_cuOccupancyMaxActiveClusters(&clusters, fixture.kernel, &config),
			 CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 3);
	assert_int_equal(received(GP_CALL_gpShareWatch), 1);
	assert_int_equal(ask_blocks(64, 0, &blocks), CUDA_SUCCESS);
}

/* In a grid of `blocks`; with a carveout, or none (-1). */
static CUresult
ask_carved(unsigned int size, unsigned int blocks, int carveout, int *clusters)
{
	CUlaunchAttribute attributes[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { size, 1, 1 } },
		{ .id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		  .value.sharedMemCarveout = (unsigned int)carveout },
	};
	const CUlaunchConfig config = { .gridDimX = blocks,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = 64,
					.blockDimY = 1,
					.blockDimZ = 1,
					.attrs = attributes,
					.numAttrs = carveout < 0 ? 1 : 2 };

	return gpc_cuOccupancyMaxActiveClusters(clusters, fixture.kernel, &config);
}

static CUresult
ask_cluster(unsigned int size, unsigned int blocks, int *clusters)
{
	return ask_carved(size, blocks, -1, clusters);
}

static void
clusters_in_a_row_are_one_question(void **state)
{
	int clusters;

	for (unsigned int size = 3; size <= 32; size++) {
		clusters = -1;
		assert_int_equal(ask_cluster(size, size, &clusters),
				 size <= 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE);
		assert_int_equal(clusters, size <= 16 ? 101 - (int)size : -1);
	}
	assert_int_equal(received(GP_CALL_gpOccupancyClusterSizes), 1);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 0);
	/* Others are asked alone: several in a grid, and longer ones. */
	assert_int_equal(ask_cluster(4, 8, &clusters), CUDA_SUCCESS);
	assert_int_equal(clusters, NUMBER);
	assert_int_equal(ask_cluster(33, 33, &clusters), CUDA_SUCCESS);
	assert_int_equal(clusters, NUMBER);
	assert_int_equal(received(GP_CALL_gpOccupancyClusterSizes), 1);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 2);
	/* What hangs on the kernel's settings is another question. */
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(ask_cluster(2, 2, &clusters), CUDA_SUCCESS);
	assert_int_equal(clusters, 99);
	assert_int_equal(received(GP_CALL_gpOccupancyClusterSizes), 2);
	for (int carveout = 0; carveout < 2; carveout++) {
		assert_int_equal(ask_carved(2, 2, carveout, &clusters), CUDA_SUCCESS);
		assert_int_equal(ask_carved(3, 3, carveout, &clusters), CUDA_SUCCESS);
	}
	assert_int_equal(received(GP_CALL_gpOccupancyClusterSizes), 4);
}

static void
older_daemon_is_asked_about_each_cluster(void **state)
{
	const uint16_t call = GP_CALL_gpOccupancyClusterSizes;
	struct gpc_session_facts *facts =
		(struct gpc_session_facts *)gpc_session_facts(fixture.session);
	int clusters;

	facts->unknown_calls[call / 8] |= (uint8_t)(1u << call % 8);
	for (int i = 0; i < 2; i++) {
		for (unsigned int size = 1; size <= 4; size++) {
			assert_int_equal(ask_cluster(size, size, &clusters), CUDA_SUCCESS);
			assert_int_equal(clusters, NUMBER);
		}
	}
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 4);
}

static void
too_few_clusters_end_the_session(void **state)
{
	int clusters;

	atomic_store(&fixture.fewer, 1);
	assert_int_equal(ask_cluster(4, 4, &clusters), CUDA_ERROR_SYSTEM_NOT_READY);
	assert_int_equal(gpc_session_status(fixture.session), CUDA_ERROR_SYSTEM_NOT_READY);
}

static void
daemon_that_tells_of_no_shares_is_asked_each_time(void **state)
{
	const CUlaunchConfig config = { .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1 };
	struct gpc_session_facts *facts =
		(struct gpc_session_facts *)gpc_session_facts(fixture.session);
	int clusters;

	facts->unknown_calls[GP_CALL_gpShareWatch / 8] |= (uint8_t)(1u << GP_CALL_gpShareWatch % 8);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			gpc_cuOccupancyMaxActiveClusters(&clusters, fixture.kernel, &config),
			CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 2);
}

static void
answers_are_bounded(void **state)
{
	for (unsigned int block = 1; block <= 1024; block++) {
		for (unsigned int shared = 0; shared < 5; shared++) {
			assert_int_equal(gpc_cuLaunchCooperativeKernel(fixture.kernel, 1, 1, 1,
								       block, 1, 1, shared, NULL,
								       NULL),
					 CUDA_SUCCESS);
		}
	}
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 5120);
	/* The last ones are still known. */
	assert_int_equal(
		gpc_cuLaunchCooperativeKernel(fixture.kernel, 1, 1, 1, 1024, 1, 1, 4, NULL, NULL),
		CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 5120);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shape_of_clusters_is_asked_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(grid_that_is_no_whole_clusters_is_asked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refused_shape_is_asked_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			cooperative_launch_is_asked_for_more_blocks_than_were_accepted, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			cooperative_launch_of_any_grid_that_fits_is_asked_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			late_refusal_is_told_once_and_launches_are_asked_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(attributes_that_nothing_hangs_on_are_never_asked,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(dynamic_shared_memory_is_allowed_without_waiting,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_may_be_refused_is_waited_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_libraries_set_is_posted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(attributes_are_asked_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(older_daemon_is_asked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(device_that_differs_is_asked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(settings_go_with_the_context, set_up, tear_down),
		cmocka_unit_test_setup_teardown(setting_is_part_of_the_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(occupancy_is_asked_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(best_block_size_is_one_question, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_few_answers_end_the_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(clusters_are_asked_again_when_the_share_changes,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(daemon_that_tells_of_no_shares_is_asked_each_time,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(clusters_in_a_row_are_one_question, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(older_daemon_is_asked_about_each_cluster, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(too_few_clusters_end_the_session, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(answers_are_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
