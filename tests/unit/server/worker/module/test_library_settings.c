/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that each of several sessions sets and queries of kernels that they share. */
#include "server/worker/device/quiesce_jobs.h"
#include "tests/unit/server/library_fixture.h"

#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static CUresult
set(struct fake_session *fake, CUfunction_attribute attribute, int value)
{
	const struct gp_args_cuFuncSetAttribute args = {
		.hfunc = GP_KERNEL(IMAGE, 0),
		.attrib = (int32_t)attribute,
		.value = value,
	};

	return gpd_cuFuncSetAttribute(&fake->session, &args);
}

static CUresult
set_dynamic(struct fake_session *fake, int bytes)
{
	return set(fake, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

static int
attribute_of(struct fake_session *fake, CUfunction_attribute attribute)
{
	const struct gp_args_cuFuncGetAttribute args = {
		.hfunc = GP_KERNEL(IMAGE, 0),
		.attrib = (int32_t)attribute,
	};
	struct gp_reply_cuFuncGetAttribute reply;

	assert_int_equal(gpd_cuFuncGetAttribute(&fake->session, &args, &reply), CUDA_SUCCESS);
	return reply.pi;
}

/* All at once. */
static void
attributes_are(struct fake_session *fake, int dynamic)
{
	const struct gp_args_gpFunctionAttributes args = { .kernel = GP_KERNEL(IMAGE, 0) };
	struct gp_reply_gpFunctionAttributes reply = { 0 };
	uint32_t values[GP_KERNEL_ATTRIBUTES];

	assert_int_equal(gpd_gpFunctionAttributes(&fake->session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.values.size, sizeof(values));
	memcpy(values, reply.values.data, sizeof(values));
	free((void *)reply.values.data);
	for (int i = 0; i < GP_KERNEL_ATTRIBUTES; i++) {
		if (reply.known >> i & 1)
			assert_true((int)le32toh(values[i]) ==
				    attribute_of(fake, (CUfunction_attribute)i));
	}
	assert_true(reply.known >> CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES & 1);
	assert_int_equal(le32toh(values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]), dynamic);
}

static int
dynamic_of(struct fake_session *fake)
{
	return attribute_of(fake, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
}

static int
blocks_of(struct fake_session *fake, size_t dynamic)
{
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.func = GP_KERNEL(IMAGE, 0),
		.blockSize = 32,
		.dynamicSMemSize = dynamic,
	};
	struct gp_reply_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags reply;

	assert_int_equal(gpd_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&fake->session,
										  &args, &reply),
			 CUDA_SUCCESS);
	return reply.numBlocks;
}

LIBRARY_TEST(each_session_reads_the_shared_memory_that_it_allowed)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	assert_int_equal(set_dynamic(&theirs, 90000), CUDA_SUCCESS);

	assert_int_equal(dynamic_of(&theirs), 90000);
	assert_int_equal(dynamic_of(&ours), DYNAMIC);
	assert_int_equal(set_dynamic(&ours, 60000), CUDA_SUCCESS);
	assert_int_equal(dynamic_of(&ours), 60000);
	assert_int_equal(dynamic_of(&theirs), 90000);
	attributes_are(&ours, 60000);
	attributes_are(&theirs, 90000);
	assert_int_equal(ant_of(&ours)->dynamic, 90000);
	assert_int_equal(set_dynamic(&ours, 100001), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set_dynamic(&ours, -1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(dynamic_of(&ours), 60000);
	assert_int_equal(loads, 1);
}

LIBRARY_TEST(a_launch_beyond_what_the_session_allowed_is_refused)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	set_dynamic(&theirs, 90000);
	fake_driver_clear_calls();

	assert_int_equal(launch(&theirs, 90000), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, DYNAMIC), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, DYNAMIC + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set_dynamic(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(launch(&ours, 101), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(launch(&theirs, 90000), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuLaunchKernelEx"), 4);
}

LIBRARY_TEST(what_else_is_set_is_set_on_code_of_ones_own)
{
	struct kernel *shared;

	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	shared = ant_of(&ours);
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
			 CUDA_SUCCESS);

	assert_int_equal(loads, 2);
	assert_ptr_not_equal(ant_of(&ours), shared);
	assert_ptr_equal(ant_of(&theirs), shared);
	assert_int_equal(shared->carveout, -1);
	assert_int_equal(ant_of(&ours)->carveout, 50);
	assert_int_equal(ant_of(&ours)->dynamic, 70000);
	assert_int_equal(dynamic_of(&ours), 70000);
	assert_int_equal(launch(&ours, 70000), CUDA_SUCCESS);
	assert_string_equal(ours.session.progress.kernel, "ant");
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 60),
			 CUDA_SUCCESS);
	assert_int_equal(loads, 2);
	assert_int_equal(unloads, 0);
}

LIBRARY_TEST(attributes_that_there_are_not_do_not_reach_the_driver)
{
	static const int none[] = { -1, INT_MIN, CU_FUNC_ATTRIBUTE_MAX, 1 << 30 };
	struct gp_args_cuFuncGetAttribute args = { .hfunc = GP_KERNEL(IMAGE, 0) };
	struct gp_reply_cuFuncGetAttribute reply;

	load(&ours, PLAIN);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		args.attrib = none[i];
		assert_int_equal(gpd_cuFuncGetAttribute(&ours.session, &args, &reply),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(set(&ours, (CUfunction_attribute)none[i], 1),
				 CUDA_ERROR_INVALID_VALUE);
	}
	assert_int_equal(gpd_library_counts.own, 0);
}

LIBRARY_TEST(code_of_ones_own_leaves_with_its_image)
{
	load(&ours, PLAIN);
	set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
	gpd_gpImageUnload(&ours.session, &(struct gp_args_gpImageUnload){ IMAGE });
	assert_int_equal(unloads, 0);
	fake_session_run_markers(&ours, -1);
	gpd_quiesce_jobs_wait();

	assert_int_equal(unloads, 1);
	assert_int_equal(fake_driver_libraries, 1);
}

LIBRARY_TEST(setting_what_is_so_already_costs_nothing)
{
	const struct gp_args_cuFuncSetCacheConfig none = { GP_KERNEL(IMAGE, 0),
							   CU_FUNC_CACHE_PREFER_NONE };
	const struct gp_args_cuFuncSetCacheConfig some = { GP_KERNEL(IMAGE, 0),
							   CU_FUNC_CACHE_PREFER_L1 };

	load(&ours, PLAIN);
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_cuFuncSetCacheConfig(&ours.session, &none), CUDA_SUCCESS);
	assert_int_equal(loads, 1);

	assert_int_equal(gpd_cuFuncSetCacheConfig(&ours.session, &some), CUDA_SUCCESS);
	assert_int_equal(loads, 2);
	assert_int_equal(ant_of(&ours)->config, CU_FUNC_CACHE_PREFER_L1);
}

LIBRARY_TEST(without_code_of_its_own_a_session_keeps_the_shared)
{
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	load_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
			 CUDA_ERROR_OUT_OF_MEMORY);

	assert_int_equal(dynamic_of(&ours), 70000);
	assert_int_equal(launch(&ours, 70000), CUDA_SUCCESS);
}

LIBRARY_TEST(occupancy_is_that_of_what_the_session_allowed)
{
	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	assert_int_equal(blocks_of(&ours, DYNAMIC), 7);
	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 0);
	set_dynamic(&theirs, 90000);
	assert_int_equal(blocks_of(&ours, DYNAMIC), 7);
	assert_int_equal(loads, 1);

	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 0);
	set_dynamic(&ours, 90000);
	assert_int_equal(blocks_of(&ours, DYNAMIC + 1), 7);
}

static CUresult
ask_clusters(uint32_t sizes, uint32_t shared, unsigned int attribute_count,
	     struct gp_occupancy_clusters *answers)
{
	const CUlaunchAttribute attributes[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION },
	};
	const struct gp_args_gpOccupancyClusterSizes args = {
		.sizes = sizes,
		.kernel = GP_KERNEL(IMAGE, 0),
		.block_x = 32,
		.block_y = 1,
		.block_z = 1,
		.shared = shared,
		.attributes = { attributes, attribute_count * sizeof(attributes[0]) },
	};
	struct gp_reply_gpOccupancyClusterSizes reply = { 0 };
	CUresult result = gpd_gpOccupancyClusterSizes(&ours.session, &args, &reply);

	if (result == CUDA_SUCCESS) {
		assert_int_equal(reply.answers.size, sizes * sizeof(answers[0]));
		memcpy(answers, reply.answers.data, reply.answers.size);
	}
	free((void *)reply.answers.data);
	return result;
}

LIBRARY_TEST(clusters_of_all_sizes_are_one_question)
{
	struct gp_occupancy_clusters answers[GP_OCCUPANCY_QUERIES_MAX];

	load(&ours, PLAIN);
	assert_int_equal(ask_clusters(6, 0, 1, answers), CUDA_SUCCESS);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(le32toh(answers[i].result),
				 i < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE);
		assert_int_equal(le32toh(answers[i].clusters), i < 4 ? 10 / (i + 1) : 0);
	}
	assert_int_equal(ask_clusters(GP_OCCUPANCY_QUERIES_MAX, 0, 1, answers), CUDA_SUCCESS);
	assert_int_equal(ask_clusters(0, 0, 1, answers), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask_clusters(GP_OCCUPANCY_QUERIES_MAX + 1, 0, 1, answers),
			 CUDA_ERROR_INVALID_VALUE);
	/* Without a cluster size, or with two, the query is ambiguous. */
	assert_int_equal(ask_clusters(6, 0, 0, answers), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask_clusters(6, 0, 2, answers), CUDA_ERROR_INVALID_VALUE);
	/* A fault is the call's. */
	assert_int_equal(ask_clusters(6, DYNAMIC + 1, 1, answers), CUDA_ERROR_ILLEGAL_ADDRESS);
}

LIBRARY_TEST(shared_code_outlives_the_context_and_what_was_set_does_not)
{
	load(&ours, PLAIN);
	set_dynamic(&ours, 70000);
	gpd_image_invalidate_context(&ours.session, &ours.context);

	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(dynamic_of(&ours), DYNAMIC);
	assert_int_equal(launch(&ours, 70000), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(loads, 1);
}

LIBRARY_TEST(code_of_ones_own_starts_anew_with_the_context)
{
	load(&ours, PLAIN);
	set(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
	gpd_image_invalidate_context(&ours.session, &ours.context);

	assert_int_equal(launch(&ours, 100), CUDA_SUCCESS);
	assert_int_equal(attribute_of(&ours, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
			 -1);
	assert_int_equal(loads, 3);
	assert_int_equal(unloads, 1);
}

LIBRARY_TEST(who_asks_for_a_variable_gets_one_of_its_own)
{
	struct gp_args_gpImageGlobal args = { FAKE_CONTEXT, IMAGE, { "$str", 4 } };
	struct gp_reply_gpImageGlobal reply;
	struct kernel *shared;

	load(&theirs, PLAIN);
	load(&ours, PLAIN);
	shared = ant_of(&theirs);
	args.name = (struct gp_bytes){ "none", 4 };
	assert_int_equal(gpd_gpImageGlobal(&ours.session, &args, &reply), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(loads, 1);
	args.name = (struct gp_bytes){ "$str", 4 };
	assert_int_equal(gpd_gpImageGlobal(&ours.session, &args, &reply), CUDA_SUCCESS);

	assert_int_equal(loads, 2);
	assert_ptr_equal((void *)reply.address, (struct library *)(ant_of(&ours) - 1));
	assert_ptr_equal(ant_of(&theirs), shared);
}

UNIT_TEST_MAIN(NULL, NULL)
