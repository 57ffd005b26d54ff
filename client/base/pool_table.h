/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private export table (cuGetExportTable) that gpupool's libcuda.so.1 provides to its
 * libnvidia-ml.so.1: the devices of all daemons in REMOTE_GPU, and their state.
 *
 * Both libraries come from one build, but either may be older: a new layout of struct
 * gp_device_state requires a new table ID.
 *
 * Ownership: the table is static.
 * Threads: any thread may call.
 * Errors: the functions return a CUresult.
 */
#ifndef GPC_POOL_TABLE_H
#define GPC_POOL_TABLE_H

#include "protocol/device_state.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define GPC_POOL_TABLE_ID                                                                          \
	{                                                                                          \
		"gpupool pool v3"                                                                  \
	}

/* A device, including one that CUDA_VISIBLE_DEVICES hides. Constant. */
struct gpc_pool_device {
	char name[256];
	CUuuid uuid;
	int pci_domain, pci_bus, pci_device;
	int major, minor; /* compute capability */
	int daemon;       /* devices with the same number are in the same machine */
};

struct gpc_pool_table {
	size_t size; /* of the table in bytes; a member beyond it does not exist */
	/* Opens the sessions as cuInit() does, if none are open, but creates no context. Stores the
	 * number of devices. */
	CUresult (*open)(int *count_p);
	CUresult (*device)(int index, struct gpc_pool_device *device);
	/* Queries the state of a device in one round trip. parts: mask of enum gp_state_part. */
	CUresult (*state)(int index, unsigned int parts, struct gp_device_state *state);
	/* Returns the version that cuDriverGetVersion() reports. */
	int (*driver_version)(void);
	/* Returns whether kernels of one device can access the memory of the other. */
	bool (*has_peer_access)(int index, int other);
};

#endif /* GPC_POOL_TABLE_H */
