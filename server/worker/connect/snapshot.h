/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot of a worker's devices at its start: the part of the Welcome message that is the same for
 * all sessions. Clients answer device queries from it. The worker packs it and the supervisor
 * stores it.
 *
 * Ownership: the caller frees the packed message.
 * Threads: the worker's main thread, after the devices are open (gpd_devices_start(),
 * device/device.h) and before the first session.
 * Errors: a property that the driver cannot report stays 0.
 */
#ifndef GPD_SNAPSHOT_H
#define GPD_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packs a Gpupool__Welcome (protocol/control.h) into *data_p, *size_p bytes, which the caller frees
 * with free(). rdma_port: port for lanes over RDMA; 0: none. Leaves the context of a device
 * current. Returns true. Returns false if out of memory: error contains one line of text of at most
 * error_size bytes, and nothing has to be freed. */
bool gpd_snapshot_pack(uint16_t rdma_port, void **data_p, size_t *size_p, char *error,
		       size_t error_size);

#endif /* GPD_SNAPSHOT_H */
