/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content of CUipcMemHandle, CUipcEventHandle and CUmemPoolPtrExportData, and of the file that
 * represents an exported object as a file descriptor. It identifies the object by daemon, worker
 * and number, and contains a secret without which the worker does not open it. The worker creates
 * handles, except those of kind GP_IPC_HOST_POOL_MEMORY. A handle passes through the application,
 * so both ends validate it. The client that opens a handle reads the sizes in it, to know how many
 * addresses the memory occupies; the worker uses its own records of the sizes.
 *
 * Ownership: plain values.
 * Threads: any.
 * Units: bytes.
 */
#ifndef GP_PROTOCOL_IPC_HANDLE_H
#define GP_PROTOCOL_IPC_HANDLE_H

#include <stdint.h>

/* Content of the member `magic`, without a NUL. */
#define GP_IPC_MAGIC "gpIP"
#define GP_IPC_HANDLE_SIZE 64
#define GP_IPC_SECRET_SIZE 16

enum gp_ipc_kind {
	/* CUipcMemHandle */
	GP_IPC_MEMORY = 1,
	/* CUipcEventHandle */
	GP_IPC_EVENT = 2,
	GP_IPC_PHYSICAL = 3,    /* in a file descriptor (cuMemExportToShareableHandle) */
	GP_IPC_POOL = 4,        /* in a file descriptor (cuMemPoolExportToShareableHandle) */
	GP_IPC_POOL_MEMORY = 5, /* a CUmemPoolPtrExportData */
	/* A CUmemPoolPtrExportData of pool memory on the host, which the client creates and no
	 * daemon opens. `daemon` is the inode of the pool's file, and the first 8 bytes of `secret`
	 * are the mapping's offset in the file. */
	GP_IPC_HOST_POOL_MEMORY = 6,
};

/* All fields are little-endian. */
struct gp_ipc_handle {
	char magic[4];
	uint8_t kind;    /* enum gp_ipc_kind */
	uint8_t device;  /* CUDA device ordinal of the daemon */
	uint16_t zero;   /* reserved */
	uint64_t daemon; /* random number of the daemon process */
	uint32_t worker; /* random number of the worker process */
	uint32_t number; /* number of the object in the worker */
	uint8_t secret[GP_IPC_SECRET_SIZE];
	uint64_t mapping; /* memory: size of the mapping that contains the allocation;
			     GP_IPC_PHYSICAL: size of the memory */
	/* GP_IPC_MEMORY and pool memory: position of the allocation within the mapping, and its
	 * size */
	uint64_t offset, size;
};

_Static_assert(sizeof(struct gp_ipc_handle) == GP_IPC_HANDLE_SIZE, "as large as CUDA's");

#endif
