/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUDirect RDMA: device memory that the network card reads and writes itself, so that large copies
 * need no staging. Whether a GPU, its driver and the card support it is detected, never assumed:
 * the driver reports the GPU's abilities, and the first registration shows whether it works.
 *
 * Threads: any, after gpd_gpudirect_memory_start().
 * Errors: a registration that fails is logged; if it is the first one of a device, GPUDirect is
 * disabled for the device as long as the process runs.
 *
 * Every parameter `device` is an ordinal below GPD_DEVICES_MAX (device.h).
 */
#ifndef GPD_GPUDIRECT_MEMORY_H
#define GPD_GPUDIRECT_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_conn;

/* GPUDirect abilities of a device as reported by the driver. */
struct gpd_gpudirect_facts {
	bool by_address; /* other PCIe devices may use addresses of its memory (nvidia-peermem) */
	/* other PCIe devices may also use addresses of memory mapped by cuMemMap(), as all memory
	 * of the worker is */
	bool mapped;
	/* The device exports its memory as dma-buf, and the driver has the function for it. */
	bool dma_buf;
	int ordering; /* CUGPUDirectRDMAWritesOrdering */
	/* CUflushGPUDirectRDMAWritesOptions; 0 if the driver has no flush function. */
	int flush_options;
	bool alone; /* the process has no other GPU, which might read its memory */
};

/* The methods of registration that follow from these abilities. */
struct gpd_gpudirect_methods {
	bool dma_buf, by_address; /* methods to try, in this order */
	/* CUflushGPUDirectRDMAWritesScope needed before the GPU sees writes; 0: no flush is
	 * needed. */
	int flush;
	const char *why; /* static text: why there is no method; NULL: there is one */
};

/* Returns the methods for these abilities; keeps no state. Declared here for tests. */
struct gpd_gpudirect_methods gpd_gpudirect_memory_choose(const struct gpd_gpudirect_facts *facts);

/* Detects the abilities of all devices and logs why a device has no method. wanted: the option
 * --peer-memory. Called once, if the worker accepts lanes over RDMA, after gpd_devices_start() and
 * before the first session. Without this call, or with wanted false, GPUDirect stays disabled. */
void gpd_gpudirect_memory_start(bool wanted);

/* Returns whether memory of the device is to be allocated so that it can be registered; false if
 * GPUDirect is disabled or there is no such device. */
bool gpd_gpudirect_memory_is_possible(int device);
/* Disables GPUDirect for the device, because the driver has refused such an allocation. */
void gpd_gpudirect_memory_disable(int device);

/*
 * Registers a whole mapping of size bytes at address with the connection's RDMA device
 * (gp_conn_register_range(), transport/transport.h). Afterwards gp_conn_has_registered() returns
 * true, until gp_memory_unregister(), which must be called before the memory is freed. Returns true
 * if it is registered; false if copies must go through staging, also if GPUDirect is disabled or
 * the connection does not use RDMA. Logs the method once per device. May block in the driver, and
 * may make the device current.
 */
bool gpd_gpudirect_memory_register(struct gp_conn *conn, uint64_t address, uint64_t size,
				   int device);

/* Makes writes of the network card visible to later work of the device, which it makes current if a
 * flush is needed. Returns CUDA_SUCCESS, also if no flush is needed, or the driver's error. */
CUresult gpd_gpudirect_memory_flush(int device);

#endif /* GPD_GPUDIRECT_MEMORY_H */
