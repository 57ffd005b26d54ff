/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/driver.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"
#include "transport/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct gpd_gpudirect_facts all = {
	.by_address = true,
	.mapped = true,
	.dma_buf = true,
	.ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER,
	.alone = true,
};

UNIT_TEST(both_ways_are_tried_where_the_driver_has_them)
{
	struct gpd_gpudirect_facts facts = all;
	struct gpd_gpudirect_methods ways = gpd_gpudirect_memory_choose(&facts);

	assert_true(ways.dma_buf && ways.by_address && !ways.flush && !ways.why);
	facts.dma_buf = false;
	ways = gpd_gpudirect_memory_choose(&facts);
	assert_true(!ways.dma_buf && ways.by_address && !ways.why);
	facts.dma_buf = true;
	facts.by_address = false;
	ways = gpd_gpudirect_memory_choose(&facts);
	assert_true(ways.dma_buf && !ways.by_address && !ways.why);
}

static void
assert_none(const struct gpd_gpudirect_facts *facts, const char *word)
{
	struct gpd_gpudirect_methods ways = gpd_gpudirect_memory_choose(facts);

	assert_false(ways.dma_buf || ways.by_address);
	assert_non_null(strstr(ways.why, word));
}

UNIT_TEST(without_gpudirect_there_is_no_way)
{
	struct gpd_gpudirect_facts facts = all;

	facts.mapped = false;
	assert_none(&facts, "mapped");
	facts = all;
	facts.dma_buf = facts.by_address = false;
	assert_none(&facts, "GPUDirect");
	facts = all;
	facts.ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;
	assert_none(&facts, "see");
	facts.flush_options = CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_MEMOPS;
	assert_none(&facts, "see");
}

UNIT_TEST(writes_are_flushed_where_the_gpu_needs_it)
{
	struct gpd_gpudirect_facts facts = all;

	facts.flush_options = CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
	assert_int_equal(gpd_gpudirect_memory_choose(&facts).flush, 0);
	facts.ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;
	assert_int_equal(gpd_gpudirect_memory_choose(&facts).flush,
			 CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
	/* Another GPU may read the memory, too. */
	facts.ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
	facts.alone = false;
	assert_int_equal(gpd_gpudirect_memory_choose(&facts).flush,
			 CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
	facts.ordering = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
	assert_int_equal(gpd_gpudirect_memory_choose(&facts).flush, 0);
}

/* A connection with a fake RDMA device, and a driver that supports everything. */
static struct {
	int dma_buf_result, address_result;
	unsigned int dma_bufs, addresses;
	CUresult export_result;
	unsigned int exports;
	int last_fd;
	unsigned int flushes;
} card;

static struct fake_session fake;

static int
card_keep(struct gp_conn *conn, void *base, size_t size, int dma_buf)
{
	if (dma_buf < 0) {
		card.addresses++;
		return card.address_result;
	}
	card.dma_bufs++;
	assert_int_equal(dma_buf, card.last_fd);
	return card.dma_buf_result;
}

static const void *
card_device(const struct gp_conn *conn)
{
	return &card;
}

static const struct gp_transport_ops card_ops = { .register_range = card_keep,
						  .device = card_device };
static struct gp_conn card_conn = { .ops = &card_ops };

static CUresult
export_range(void *handle, CUdeviceptr address, size_t size, CUmemRangeHandleType type,
	     unsigned long long flags)
{
	card.exports++;
	if (card.export_result == CUDA_SUCCESS)
		*(int *)handle = card.last_fd = dup(0);
	return card.export_result;
}

static CUresult
flush(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	card.flushes++;
	return CUDA_SUCCESS;
}

static CUresult
attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED ||
		 which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED ||
		 which == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED ||
		 which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
	return CUDA_SUCCESS;
}

static CUresult
error_name(CUresult result, const char **name)
{
	*name = "CUDA_ERROR_NOT_SUPPORTED";
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	memset(&card, 0, sizeof(card));
	fake_session_create(&fake);
	gpd_driver.cuDeviceGetAttribute = attribute;
	gpd_driver.cuGetErrorName = error_name;
	gpd_driver.cuMemGetHandleForAddressRange = export_range;
	gpd_driver.cuFlushGPUDirectRDMAWrites = flush;
	fake.session.conn = &card_conn;
	return gpd_memory_create(&fake.session);
}

static int
teardown(void **state)
{
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake.session.conn = NULL;
	fake_session_destroy(&fake);
	return fake_driver_chunks;
}

static int
reach(uint64_t granule, uint64_t offset, uint64_t size)
{
	return gpd_memory_get_gpudirect_device(&fake.session,
					       FAKE_WINDOW + granule * FAKE_GRANULE + offset, size);
}

static void
map(uint64_t granule, uint64_t granules, int device)
{
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW + granule * FAKE_GRANULE,
					granules * FAKE_GRANULE, device),
			 CUDA_SUCCESS);
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(a_mapping_is_registered_once_when_it_is_first_used)
{
	gpd_gpudirect_memory_start(true);
	map(0, 2, 0);
	map(2, 1, 0);

	assert_int_equal(card.exports, 0);
	assert_int_equal(reach(0, 5, FAKE_GRANULE), 0);
	assert_int_equal(reach(1, 0, FAKE_GRANULE), 0);
	assert_int_equal(card.exports, 1);
	assert_int_equal(card.dma_bufs, 1);
	assert_int_equal(card.addresses, 0);
	/* The descriptor is closed. */
	assert_int_equal(fcntl(card.last_fd, F_GETFD), -1);
	/* Of two mappings, or of none. */
	assert_int_equal(reach(1, 1, FAKE_GRANULE), -1);
	assert_int_equal(reach(5, 0, 1), -1);
	assert_int_equal(card.exports, 1);
	assert_int_equal(gpd_gpudirect_memory_flush(0), CUDA_SUCCESS);
	assert_int_equal(card.flushes, 1);
}

TEST(what_makes_no_dma_buf_is_registered_by_its_address)
{
	gpd_gpudirect_memory_start(true);
	card.export_result = CUDA_ERROR_NOT_SUPPORTED;
	map(0, 1, 0);
	assert_int_equal(reach(0, 0, FAKE_GRANULE), 0);
	assert_int_equal(card.addresses, 1);

	card.export_result = CUDA_SUCCESS;
	card.dma_buf_result = GP_E_UNSUPPORTED;
	map(1, 1, 0);
	assert_int_equal(reach(1, 0, FAKE_GRANULE), 0);
	assert_int_equal(card.addresses, 2);
	assert_int_equal(card.dma_bufs, 1);

	/* One that fails where others did not fails alone. */
	card.address_result = -ENOMEM;
	map(2, 1, 0);
	assert_int_equal(reach(2, 0, FAKE_GRANULE), -1);
	assert_int_equal(reach(2, 0, FAKE_GRANULE), -1);
	assert_int_equal(card.addresses, 3);
	card.address_result = 0;
	map(3, 1, 0);
	assert_int_equal(reach(3, 0, FAKE_GRANULE), 0);
}

/* On the other device, of which nothing is known yet. */
TEST(a_first_failure_is_remembered_of_the_device)
{
	gpd_gpudirect_memory_start(true);
	card.dma_buf_result = -EFAULT;
	card.address_result = -EFAULT;
	map(0, 1, 1);
	map(1, 1, 1);
	assert_int_equal(reach(0, 0, FAKE_GRANULE), -1);
	assert_int_equal(card.exports, 1);
	card.dma_buf_result = 0;
	assert_int_equal(reach(1, 0, FAKE_GRANULE), -1);
	assert_int_equal(card.exports, 1);
}

TEST(switched_off_nothing_is_tried)
{
	gpd_gpudirect_memory_start(false);
	map(0, 1, 0);
	assert_int_equal(reach(0, 0, FAKE_GRANULE), -1);
	assert_false(gpd_gpudirect_memory_is_possible(0));
	assert_int_equal(card.exports, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
