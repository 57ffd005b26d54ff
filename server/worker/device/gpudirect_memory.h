/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUDirect RDMA: device memory that the network card reads and writes itself, so that large copies
 * need no staging. Whether a GPU, its driver and the card support it is detected, never assumed:
 * the driver reports the GPU's abilities, and the first registration shows whether it works.
 *
 * Threads: any, after gpd_gpudirect_memory_start().
 * Errors: a registration that fails is logged and disables GPUDirect for the device if it is the
 * first.
 */
#ifndef GPD_GPUDIRECT_MEMORY_H
#define GPD_GPUDIRECT_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_conn;

/* GPUDirect abilities as reported by the driver. */
struct gpd_gpudirect_facts {
	bool by_address;   /* other devices may use addresses of its memory (nvidia-peermem) */
	bool mapped;       /* also of memory mapped by cuMemMap(), as all of the worker's is */
	bool dma_buf;      /* it exports its memory as dma-buf and has the function for it */
	int ordering;      /* CUGPUDirectRDMAWritesOrdering */
	int flush_options; /* CUflushGPUDirectRDMAWritesOptions; 0 without the function */
	bool alone;        /* no other GPU of this process reads its memory */
};

/* The methods that follow from these facts. */
struct gpd_gpudirect_methods {
	bool dma_buf, by_address; /* methods to try, in this order */
	int flush;       /* scope of the flush needed before the GPU sees writes; 0: none */
	const char *why; /* why there is no method, else NULL */
};

/* Pure decision; exported for tests. */
struct gpd_gpudirect_methods gpd_gpudirect_memory_choose(const struct gpd_gpudirect_facts *facts);

/* To be called if the worker accepts lanes over RDMA, when its devices are known and before its
 * first session. Otherwise, or with wanted false, GPUDirect stays disabled. */
void gpd_gpudirect_memory_start(bool wanted);

/* Any thread. Whether memory of the device is to be allocated so that it can be registered.
 * gpd_gpudirect_memory_disable() is called when the driver refuses such an allocation; it is not
 * tried again. */
bool gpd_gpudirect_memory_is_possible(int device);
void gpd_gpudirect_memory_disable(int device);

/*
 * Registers a whole mapping with the connection's RDMA device (gp_conn_register_range()).
 * Afterwards gp_conn_has_registered() returns true, until gp_memory_unregister(), which must be
 * called before the memory is freed. Returns false if copies must go through staging. Logs the
 * method once per device. Any thread.
 */
bool gpd_gpudirect_memory_register(struct gp_conn *conn, uint64_t address, uint64_t size,
				   int device);

/* Makes writes of the network card visible to later work of the device. */
CUresult gpd_gpudirect_memory_flush(int device);

#endif /* GPD_GPUDIRECT_MEMORY_H */
