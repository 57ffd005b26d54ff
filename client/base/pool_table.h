/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private export table (cuGetExportTable) that gpupool's libcuda.so.1 provides to its
 * libnvidia-ml.so.1: the devices of all daemons in REMOTE_GPU, and their state.
 *
 * Devices are numbered from 0 in the order of REMOTE_GPU, independently of CUDA_VISIBLE_DEVICES.
 * Both libraries come from one build, but either may be older: a new layout of struct
 * gp_device_state requires a new table ID.
 *
 * Ownership: the table is static; results are copied to the caller's memory.
 * Threads: any thread may call.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or an error; their results are
 * undefined after an error.
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

/* Properties of a device, including one that CUDA_VISIBLE_DEVICES hides. They do not change. */
struct gpc_pool_device {
	char name[256];
	CUuuid uuid;
	int pci_domain, pci_bus, pci_device;
	int major, minor; /* compute capability */
	int daemon; /* index of the daemon in REMOTE_GPU; devices with the same number are in the
		       same machine */
};

/* The functions of the table. */
struct gpc_pool_table {
	size_t size; /* size of the table in bytes; a member beyond it does not exist */
	/* Opens the sessions as cuInit() does, if none are open, but creates no context. Must be
	 * called before device(), state() and has_peer_access(). Sets *count_p to the number of
	 * devices. May wait for connections and, as GPUPOOL_WAIT allows, for a session slot.
	 * Returns the errors of cuInit(). */
	CUresult (*open)(int *count_p);
	/* Fills *device. Returns CUDA_ERROR_INVALID_DEVICE if the index is out of range. */
	CUresult (*device)(int index, struct gpc_pool_device *device);
	/* Queries the state of a device in one round trip, for which it waits. parts: mask of enum
	 * gp_state_part, the members of *state that are needed. Returns CUDA_ERROR_INVALID_DEVICE
	 * if the index is out of range, or the errors of the call. */
	CUresult (*state)(int index, unsigned int parts, struct gp_device_state *state);
	/* Returns the version that cuDriverGetVersion() reports. */
	int (*driver_version)(void);
	/* Returns whether kernels of one device can access the memory of the other; false if an
	 * index is out of range. */
	bool (*has_peer_access)(int index, int other);
};

#endif /* GPC_POOL_TABLE_H */
