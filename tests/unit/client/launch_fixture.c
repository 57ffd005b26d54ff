/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/launch_fixture.h"

#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"

#include <string.h>

struct fixture fixture;

static void
note_share(struct fake_daemon *daemon)
{
	const uint32_t fields[2] = { 0 };
	const struct gp_header header = { .size = sizeof(header) + sizeof(fields),
					  .call = GP_NOTE_SHARE };

	fake_daemon_send(daemon, &header, fields, sizeof(fields), NULL, 0);
}

/* Replies with 1, 2, 3 ... blocks for the requested sizes, largest first. */
static void
answer_blocks(struct fake_daemon *daemon, const struct gp_header *header, size_t size)
{
	/* The queries follow the kernel, the flags and their size, padded to 8 bytes. */
	const uint32_t count = (uint32_t)((size - 16) / sizeof(struct gp_occupancy_query));
	uint32_t blocks[GP_OCCUPANCY_QUERIES_MAX];
	uint64_t fields[GP_OCCUPANCY_QUERIES_MAX];
	struct gp_enc enc;

	for (uint32_t i = 0; i < count; i++)
		blocks[i] = i + 1;
	gp_enc_init(&enc, fields, sizeof(fields));
	gp_enc_bytes(&enc, (struct gp_bytes){ blocks, (count - atomic_load(&fixture.fewer)) *
							      sizeof(blocks[0]) });
	gp_enc_pad(&enc);
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
}

/* Replies with all attributes but the PTX version. */
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
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
}

/* Replies with 100 clusters of one block and 99 of two. More than 16 blocks are rejected. */
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
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, fields, gp_enc_size(&enc));
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
		fake_daemon_note_error_of(daemon, CUDA_ERROR_INVALID_CLUSTER_SIZE, false,
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

		fake_daemon_reply(daemon, header,
				  words[0] ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED, words,
				  words[0] ? sizeof(words) : 0);
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
	fake_daemon_reply(daemon, header, result, &number, has_number ? sizeof(number) : 0);
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
	fixture.info = (struct gp_image_info){ .kernel_count = 2, .kernels = fixture.kernels };
	image->device = gpc_device_get(0);
	image->info = &fixture.info;
	image->kernels = (struct gpc_function_list){ .kind = GPC_KIND_KERNEL, .image = image };
	(void)pthread_mutex_init(&image->lock, NULL);
	image->answers = (struct gpc_query_cache)GPC_QUERY_CACHE(GPC_IMAGE_ANSWERS_MAX);
	assert_int_equal(gpc_handle_add(GPC_KIND_IMAGE, &image->handle), 0);
	assert_true(gpc_function_list_init(&image->kernels));
	fixture.kernel = (CUfunction)gpc_function_list_get(&image->kernels, 0)->handle.token;
	fixture.other = (CUfunction)gpc_function_list_get(&image->kernels, 1)->handle.token;
}

int
set_up_launches(void **state)
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

int
tear_down_launches(void **state)
{
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	gpc_function_list_fini(&fixture.image.kernels);
	gpc_query_cache_fini(&fixture.image.answers);
	gpc_image_settings_free(fixture.image.settings);
	gpc_handle_remove(&fixture.image.handle);
	(void)pthread_mutex_destroy(&fixture.image.lock);
	fake_daemon_stop(&fixture.daemon, fixture.session);
	gpc_devices_destroy();
	return 0;
}

size_t
received(uint16_t call)
{
	return fake_daemon_received(&fixture.daemon, call);
}

CUresult
set(CUfunction_attribute attribute, int value)
{
	return gpc_cuFuncSetAttribute(fixture.kernel, attribute, value);
}

CUresult
allow_shared(int value)
{
	return set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value);
}

CUresult
launch_together(CUfunction kernel, unsigned int grid)
{
	return gpc_cuLaunchCooperativeKernel(kernel, grid, 1, 1, 64, 1, 1, 0, NULL, NULL);
}
