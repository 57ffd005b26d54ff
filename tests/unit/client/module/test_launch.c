/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: which are posted, and which are waited for. */
#include "tests/unit/client/launch_fixture.h"

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

LAUNCH_TEST(shape_of_clusters_is_asked_once)
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

LAUNCH_TEST(grid_that_is_no_whole_clusters_is_asked)
{
	assert_int_equal(launch_clusters(2, 4, 64), CUDA_SUCCESS);
	atomic_store(&fixture.refusal, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(launch_clusters(2, 5, 64), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(launch_clusters(2, 6, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
}

LAUNCH_TEST(refused_shape_is_asked_again)
{
	atomic_store(&fixture.refusal, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch_clusters(16, 16, 64), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	atomic_store(&fixture.refusal, CUDA_SUCCESS);
	assert_int_equal(launch_clusters(16, 16, 64), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 4);
	assert_int_equal(received(GP_CALL_gpLaunch), 0);
}

LAUNCH_TEST(cooperative_launch_is_asked_for_more_blocks_than_were_accepted)
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
LAUNCH_TEST(cooperative_launch_of_any_grid_that_fits_is_asked_once)
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
	/* After a change of the share all is queried again. */
	atomic_store(&fixture.multiprocessors, 2);
	atomic_store(&fixture.share, true);
	assert_int_equal(received(GP_CALL_gpLaunch), 5 * NUMBER + 1);
	assert_int_equal(launch_together(fixture.kernel, 2 * NUMBER), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 2 * NUMBER + 1),
			 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(received(GP_CALL_gpResource), 2);
}

/* The share has become smaller, say. */
LAUNCH_TEST(late_refusal_is_told_once_and_launches_are_asked_again)
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

LAUNCH_TEST(attributes_that_nothing_hangs_on_are_never_asked)
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

LAUNCH_TEST(answers_are_bounded)
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

UNIT_TEST_MAIN(NULL, NULL)
