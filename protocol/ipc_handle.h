/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a CUipcMemHandle, a CUipcEventHandle and a CUmemPoolPtrExportData hold: which object of
 * which worker of which daemon is meant, and a secret, without which the daemon opens nothing.  The
 * daemon makes it.  The client that opens it reads sizes out of it, to know how many addresses the
 * memory takes; the daemon goes by its own.  Any thread; the bytes belong to whoever has them.
 */
#ifndef GP_PROTOCOL_IPC_HANDLE_H
#define GP_PROTOCOL_IPC_HANDLE_H

#include <stdint.h>

#define GP_IPC_MAGIC "gpIP"
#define GP_IPC_HANDLE_SIZE 64
#define GP_IPC_SECRET_SIZE 16

enum gp_ipc_kind {
	GP_IPC_MEMORY = 1,
	GP_IPC_EVENT = 2,
	GP_IPC_PHYSICAL = 3,    /* in a descriptor (cuMemExportToShareableHandle) */
	GP_IPC_POOL = 4,        /* in a descriptor (cuMemPoolExportToShareableHandle) */
	GP_IPC_POOL_MEMORY = 5, /* a CUmemPoolPtrExportData */
	/* The same of host memory, which no daemon opens: `daemon` is the inode of the pool's file,
	 * and the first 8 bytes of `secret` are the mapping's offset in the file. */
	GP_IPC_HOST_POOL_MEMORY = 6,
};

/* Little-endian. */
struct gp_ipc_handle {
	char magic[4];
	uint8_t kind;   /* enum gp_ipc_kind */
	uint8_t device; /* the daemon's ordinal */
	uint16_t zero;
	uint64_t daemon; /* a random number, one for each run of a daemon */
	uint32_t worker; /* the same for each of its workers */
	uint32_t number; /* of the object in the worker */
	uint8_t secret[GP_IPC_SECRET_SIZE];
	uint64_t mapping;      /* of memory: bytes that are mapped together */
	uint64_t offset, size; /* and the allocation in them */
};

_Static_assert(sizeof(struct gp_ipc_handle) == GP_IPC_HANDLE_SIZE, "as large as CUDA's");

#endif
