/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/gpudirect_memory.h"

#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "transport/transport.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Result of the first registration on a device. If it fails, or if the driver cannot allocate such
 * memory, no other is tried. */
enum knowledge {
	UNTRIED,
	WORKS,
	HOPELESS
};

static struct {
	struct gpd_gpudirect_methods ways;
	_Atomic int known; /* enum knowledge */
} devices[GPD_DEVICES_MAX];

struct gpd_gpudirect_methods
gpd_gpudirect_memory_choose(const struct gpd_gpudirect_facts *facts)
{
	int needed = facts->alone ? CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
				  : CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
	bool ordered = facts->ordering >= needed;
	struct gpd_gpudirect_methods ways = { 0 };

	if (!facts->dma_buf && !facts->by_address)
		ways.why = "the GPU or its driver has no GPUDirect RDMA";
	else if (!facts->mapped)
		ways.why = "not with memory that is mapped (cuMemMap)";
	else if (!ordered && !(facts->flush_options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
		ways.why = "the GPU may not see remote writes, and cannot flush them";
	if (ways.why)
		return ways;
	ways.dma_buf = facts->dma_buf;
	ways.by_address = facts->by_address;
	if (!ordered)
		ways.flush = facts->alone ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
					  : CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES;
	return ways;
}

static int
device_get_attribute(int device, CUdevice_attribute which)
{
	int value = 0;

	if (gpd_driver.cuDeviceGetAttribute(&value, which, gpd_devices.all[device].device))
		return 0;
	return value;
}

static struct gpd_gpudirect_facts
facts_get(int device)
{
	struct gpd_gpudirect_facts facts = {
		.by_address =
			device_get_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED),
		.mapped = device_get_attribute(
			device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
		.ordering = device_get_attribute(
			device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING),
		.alone = gpd_devices.count == 1,
	};

	if (gpd_driver_has(cuMemGetHandleForAddressRange))
		facts.dma_buf = device_get_attribute(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
	if (gpd_driver_has(cuFlushGPUDirectRDMAWrites))
		facts.flush_options = device_get_attribute(
			device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
	return facts;
}

void
gpd_gpudirect_memory_start(bool wanted)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		struct gpd_gpudirect_facts facts;

		if (gpd_devices.all[i].absent)
			continue;
		facts = facts_get(i);
		devices[i].ways =
			wanted ? gpd_gpudirect_memory_choose(&facts)
			       : (struct gpd_gpudirect_methods){ .why = "--peer-memory=off" };
		if (devices[i].ways.why)
			gpd_info("rdma: memory of GPU %d is not registered, copies go through "
				 "staging: %s",
				 i, devices[i].ways.why);
	}
}

bool
gpd_gpudirect_memory_is_possible(int device)
{
	const struct gpd_gpudirect_methods *ways = &devices[device].ways;

	return (ways->dma_buf || ways->by_address) &&
	       atomic_load(&devices[device].known) != HOPELESS;
}

void
gpd_gpudirect_memory_disable(int device)
{
	atomic_store(&devices[device].known, HOPELESS);
}

static const char *
error_describe(int r)
{
	return r == GP_E_UNSUPPORTED ? "libibverbs does not support it" : strerror(-r);
}

/* On failure, why describes it, followed by a separator for the next reason. */
static bool
register_dma_buf(struct gp_conn *conn, uint64_t address, uint64_t size, int device, char *why,
		 size_t why_size)
{
	int fd = -1, r;
	const char *name = "?";
	CUresult result = gpd_device_enter(device);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemGetHandleForAddressRange(
			&fd, address, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (result != CUDA_SUCCESS) {
		(void)gpd_driver.cuGetErrorName(result, &name);
		(void)snprintf(why, why_size, "dma-buf: %s; ", name);
		return false;
	}
	r = gp_conn_register_range(conn, (void *)(uintptr_t)address, size, fd);
	/* The registration has its own reference to the dma-buf. */
	(void)close(fd);
	if (r)
		(void)snprintf(why, why_size, "ibv_reg_dmabuf_mr: %s; ", error_describe(r));
	return r == 0;
}

static void
result_log(int device, bool registered, const char *text)
{
	int untried = UNTRIED;

	if (!atomic_compare_exchange_strong(&devices[device].known, &untried,
					    registered ? WORKS : HOPELESS))
		gpd_debug("rdma: memory of GPU %d: %s", device, text);
	else if (registered)
		gpd_info("rdma: memory of GPU %d is registered by %s: large copies use GPUDirect "
			 "RDMA to and from it",
			 device, text);
	else
		gpd_info("rdma: memory of GPU %d is not registered, copies go through staging: %s",
			 device, text);
}

bool
gpd_gpudirect_memory_register(struct gp_conn *conn, uint64_t address, uint64_t size, int device)
{
	const struct gpd_gpudirect_methods *ways = &devices[device].ways;
	char no_buf[80] = "dma-buf: not supported; ", no_address[120] = "no addresses for others";
	char text[200] = "dma-buf";
	bool registered = false;
	int r;

	if (!gpd_gpudirect_memory_is_possible(device) || !gp_conn_get_device(conn))
		return false;
	if (ways->dma_buf)
		registered = register_dma_buf(conn, address, size, device, no_buf, sizeof(no_buf));
	if (!registered && ways->by_address) {
		r = gp_conn_register_range(conn, (void *)(uintptr_t)address, size, -1);
		registered = r == 0;
		(void)snprintf(text, sizeof(text), "its addresses");
		if (r)
			(void)snprintf(no_address, sizeof(no_address), "ibv_reg_mr: %s",
				       error_describe(r));
	}
	if (!registered)
		(void)snprintf(text, sizeof(text), "%s%s", no_buf, no_address);
	result_log(device, registered, text);
	return registered;
}

CUresult
gpd_gpudirect_memory_flush(int device)
{
	int flush = devices[device].ways.flush;
	CUresult result;

	if (!flush)
		return CUDA_SUCCESS;
	result = gpd_device_enter(device);
	if (result != CUDA_SUCCESS)
		return result;
	return gpd_driver.cuFlushGPUDirectRDMAWrites(
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
		(CUflushGPUDirectRDMAWritesScope)flush);
}
