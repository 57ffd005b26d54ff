/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda.so.1 tells gpupool's libnvidia-ml.so.1, by cuGetExportTable: the devices of all the
 * daemons that REMOTE_GPU names, and how they are.  Both come from one build, but either may be
 * older: a new layout of struct gp_device_state is a new ID.  The table lies there for the life of
 * the process; any thread; results are CUresults.
 */
#ifndef GPC_POOL_TABLE_H
#define GPC_POOL_TABLE_H

#include "protocol/device_state.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_POOL_TABLE_ID                                                                          \
	{                                                                                          \
		"gpupool pool v3"                                                                  \
	}

/* A device, whether CUDA_VISIBLE_DEVICES hides it or not.  It never changes. */
struct gpc_pool_device {
	char name[256];
	CUuuid uuid;
	int pci_domain, pci_bus, pci_device;
	int major, minor; /* compute capability */
	int daemon;       /* devices with the same number are in one machine */
};

struct gpc_pool_table {
	size_t size; /* of the table: what lies behind it is not there */
	/* Opens the sessions of cuInit, if there are none, and no context; the number of devices.
	 */
	CUresult (*open)(int *count_p);
	CUresult (*device)(int index, struct gpc_pool_device *device);
	/* One round trip; parts: enum gp_state_part. */
	CUresult (*state)(int index, unsigned int parts, struct gp_device_state *state);
	/* As cuDriverGetVersion says it. */
	int (*driver_version)(void);
	/* Whether kernels of one device can be given the memory of the other. */
	bool (*has_peer_access)(int index, int other);
};

#endif /* GPC_POOL_TABLE_H */
