/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digest by which a CUDA runtime verifies that the driver tables and devices that it sees come from
 * one driver in its own process. The runtime requests it through a private table (export_table.c)
 * and compares it with the one that it expects.
 *
 * If the two differ, every call of that runtime fails with error 103
 * (cudaErrorSoftwareValidityNotEstablished).
 *
 * Threads: any; there is no state.
 */
#ifndef GPC_INTEGRITY_H
#define GPC_INTEGRITY_H

#include <stddef.h>
#include <stdint.h>

#define GPC_INTEGRITY_LEN 16

/* Identity of a device, with the values that cuDeviceGetUuid and the three PCI attributes of
 * cuDeviceGetAttribute return. */
struct gpc_device_identity {
	uint8_t uuid[16];
	int32_t pci_domain;
	int32_t pci_bus;
	int32_t pci_device;
};

/* All values that the digest may cover; used only during the call. */
struct gpc_integrity_input {
	uint32_t driver_version; /* as cuDriverGetVersion returns it */
	uint32_t version; /* argument of the runtime's call: its version, a multiple of 10, plus 0,
			     1 or 2 */
	uint32_t process_id;
	uint32_t thread_id; /* low 32 bits of pthread_self() */
	/* addresses of the two private tables in which the runtime finds these functions */
	uint64_t cudart_table;
	uint64_t integrity_table;
	uint64_t integrity_function; /* the function pointer in the integrity table */
	uint64_t seconds;            /* argument of the runtime's call: seconds of Unix time */
	const struct gpc_device_identity
		*devices; /* device_count elements, in the order of their ordinals */
	size_t device_count;
};

/* Computes the digest that the runtime expects for `input` and stores it in `answer`. A runtime
 * requests three digests, with its version plus 0, 1 and 2; the first two are constants, for which
 * nothing else in *input is read. */
void gpc_integrity_digest(const struct gpc_integrity_input *input,
			  uint8_t answer[GPC_INTEGRITY_LEN]);

#endif /* GPC_INTEGRITY_H */
