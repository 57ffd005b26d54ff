/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest by which the CUDA runtime satisfies itself that the tables it was given and the
 * devices it was told of come from one driver in its own process. A function of its inputs alone.
 * A digest that differs makes every call of that runtime fail with error 103.
 */
#ifndef GPC_INTEGRITY_H
#define GPC_INTEGRITY_H

#include <stddef.h>
#include <stdint.h>

#define GPC_INTEGRITY_LEN 16

/* As cuDeviceGetUuid and the three PCI attributes of cuDeviceGetAttribute answer. */
struct gpc_device_identity {
	uint8_t uuid[16];
	int32_t pci_domain;
	int32_t pci_bus;
	int32_t pci_device;
};

struct gpc_integrity_input {
	uint32_t driver_version; /* as cuDriverGetVersion answers */
	uint32_t version;        /* argument of the call: the runtime's version, plus 0, 1 or 2 */
	uint32_t process_id;
	uint32_t thread_id; /* low half of pthread_self() */
	uint64_t cudart_table;
	uint64_t integrity_table;
	uint64_t integrity_function;               /* as it stands in the integrity table */
	uint64_t seconds;                          /* argument of the call: Unix time */
	const struct gpc_device_identity *devices; /* in the order of ordinals */
	size_t device_count;
};

void gpc_integrity_digest(const struct gpc_integrity_input *input,
			  uint8_t answer[GPC_INTEGRITY_LEN]);

#endif /* GPC_INTEGRITY_H */
