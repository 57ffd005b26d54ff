/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private export table (cuGetExportTable) that gpupool's libcuda.so.1 provides to its
 * libnvidia-ml.so.1: the devices of all daemons in REMOTE_GPU, and their state.
 *
 * Devices are numbered from 0 in the order of REMOTE_GPU, independently of CUDA_VISIBLE_DEVICES.
 * Both libraries usually come from one build, but either may be older: libnvidia-ml.so.1 refuses a
 * table that is smaller than its own, and a new layout of struct gp_device_state requires a new
 * table ID.
 *
 * Ownership: the table is static; results are copied to the caller's memory.
 * Threads: any thread may call.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function. After an error, their outputs are undefined unless stated otherwise.
 */
#ifndef GPC_NVML_TABLE_H
#define GPC_NVML_TABLE_H

#include "protocol/device_state.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* ID of the table for cuGetExportTable(), the initializer of a CUuuid. */
#define GPC_NVML_TABLE_ID                                                                          \
	{                                                                                          \
		"gpupool pool v3"                                                                  \
	}

/* Properties of a device, including one that CUDA_VISIBLE_DEVICES hides. They do not change. */
struct gpc_nvml_device {
	char name[256];
	CUuuid uuid;
	int pci_domain, pci_bus, pci_device;
	int major, minor; /* compute capability */
	int daemon; /* number of the device's session, from 0 in the order of REMOTE_GPU; devices
		       with the same number are in the same machine */
};

/* The functions of the table. */
struct gpc_nvml_table {
	size_t size; /* size of the table in bytes; a member beyond it does not exist */
	/* Opens the sessions, if none are open, as gpc_session_open() does (client/entry/init.h),
	 * with its waits and errors. Does not initialize CUDA. Must be called before device(),
	 * state() and has_peer_access(). Sets *count_p to the number of devices; 0 after an error.
	 * Returns CUDA_ERROR_NOT_PERMITTED in a signal handler that has interrupted a call. */
	CUresult (*open)(int *count_p);
	/* Fills *device. Returns CUDA_ERROR_INVALID_DEVICE if the index is out of range. */
	CUresult (*device)(int index, struct gpc_nvml_device *device);
	/* Queries the state of a device in one round trip, for which it waits. parts: the members
	 * of *state that are needed, a mask of enum gp_state_part (protocol/device_state.h).
	 * Errors: CUDA_ERROR_INVALID_DEVICE if the index is out of range; CUDA_ERROR_UNKNOWN if the
	 * reply is malformed; CUDA_ERROR_NOT_PERMITTED as for open(); the error of a failed session
	 * or of the daemon. */
	CUresult (*state)(int index, unsigned int parts, struct gp_device_state *state);
	/* Returns the version that cuDriverGetVersion() reports. Opens the sessions as open() does,
	 * if none are open, with the same waits. Returns CUDA_VERSION if they cannot be opened. */
	int (*driver_version)(void);
	/* Returns whether kernels of one device can access the memory of the other; false if an
	 * index is out of range. */
	bool (*has_peer_access)(int index, int other);
};

#endif /* GPC_NVML_TABLE_H */
