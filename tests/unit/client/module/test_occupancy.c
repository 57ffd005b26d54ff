/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancy queries: which of them are sent once. */
#include "tests/unit/client/launch_fixture.h"

static CUresult
ask_blocks(int size, size_t shared, int *blocks)
{
	return gpc_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, fixture.kernel, size,
							       shared);
}

LAUNCH_TEST(occupancy_is_asked_once)
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

LAUNCH_TEST(best_block_size_is_one_question)
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

LAUNCH_TEST(too_few_answers_end_the_session)
{
	int grid, block;

	atomic_store(&fixture.fewer, 1);
	assert_int_equal(
		gpc_cuOccupancyMaxPotentialBlockSize(&grid, &block, fixture.kernel, NULL, 0, 0),
		CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(gpc_session_status(fixture.session), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

LAUNCH_TEST(clusters_are_asked_again_when_the_share_changes)
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

LAUNCH_TEST(clusters_in_a_row_are_one_question)
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

LAUNCH_TEST(older_daemon_is_asked_about_each_cluster)
{
	int clusters;

	fake_daemon_lacks(fixture.session, GP_CALL_gpOccupancyClusterSizes);
	for (int i = 0; i < 2; i++) {
		for (unsigned int size = 1; size <= 4; size++) {
			assert_int_equal(ask_cluster(size, size, &clusters), CUDA_SUCCESS);
			assert_int_equal(clusters, NUMBER);
		}
	}
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 4);
}

LAUNCH_TEST(too_few_clusters_end_the_session)
{
	int clusters;

	atomic_store(&fixture.fewer, 1);
	assert_int_equal(ask_cluster(4, 4, &clusters), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(gpc_session_status(fixture.session), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

LAUNCH_TEST(daemon_that_tells_of_no_shares_is_asked_each_time)
{
	const CUlaunchConfig config = { .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1 };
	int clusters;

	fake_daemon_lacks(fixture.session, GP_CALL_gpShareWatch);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			gpc_cuOccupancyMaxActiveClusters(&clusters, fixture.kernel, &config),
			CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpOccupancyCluster), 2);
}

UNIT_TEST_MAIN(NULL, NULL)
