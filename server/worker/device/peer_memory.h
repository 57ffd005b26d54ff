/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that the network card reads and writes by itself (GPUDirect RDMA), so that large
 * copies need no staging.  Whether a GPU, its driver and the card can do it is found out, never
 * assumed: the driver says what the GPU can, and the first registration says the rest.
 */
#ifndef GPD_PEER_MEMORY_H
#define GPD_PEER_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_conn;

/* What the driver says. */
struct gpd_gpudirect_facts {
	bool by_address;   /* others may have the addresses of its memory (nvidia-peermem) */
	bool mapped;       /* also of memory that is mapped (cuMemMap()), as all of ours is */
	bool dma_buf;      /* it makes dma-bufs of its memory, and has the function for it */
	int ordering;      /* CUGPUDirectRDMAWritesOrdering */
	int flush_options; /* CUflushGPUDirectRDMAWritesOptions; 0 without the function */
	bool alone;        /* no other GPU of this process reads its memory */
};

/* What follows from it. */
struct gpd_gpudirect_methods {
	bool dma_buf, by_address; /* are to be tried, in this order */
	int flush;       /* what writes need before the GPU sees them: a scope, or 0: nothing */
	const char *why; /* neither is: NULL otherwise */
};

struct gpd_gpudirect_methods gpd_gpudirect_memory_choose(const struct gpd_gpudirect_facts *facts);

/* Of the worker, when its devices are known and before its first session, if it takes lanes over
 * RDMA.  Without it, or with wanted false, all that follows says no. */
void gpd_gpudirect_memory_start(bool wanted);

/* Whether memory of the device is to be made so that it can be registered, any thread; or the
 * driver makes none: not again. */
bool gpd_gpudirect_memory_is_possible(int device);
void gpd_gpudirect_memory_disable(int device);

/*
 * Registers a whole mapping with the RDMA device of the connection (gp_conn_register_range()): from
 * then on gp_conn_has_registered() says so, until gp_memory_unregister(), which comes before the
 * memory goes.  false: it goes through staging.  Tells the log which way it is, once for each
 * device.  Any thread.
 */
bool gpd_gpudirect_memory_register(struct gp_conn *conn, uint64_t address, uint64_t size,
				   int device);

/* The network card has written there: the device's later work shall see it. */
CUresult gpd_gpudirect_memory_flush(int device);

#endif /* GPD_PEER_MEMORY_H */
