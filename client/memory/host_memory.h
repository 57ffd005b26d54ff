/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the application allocated or registered through CUDA.  It is ordinary memory of
 * this process; what counts is that CUDA knows it as pinned.  Any thread may call.
 */
#ifndef GPC_HOST_MEMORY_H
#define GPC_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* Fills found when address lies in pinned memory. */
bool gpc_host_memory_find(uint64_t address, struct gpc_address *found);

/* Whether all of [address, address + size) is pinned, in one piece. */
bool gpc_host_memory_is_pinned(const void *address, size_t size);

/* Frees what was allocated, and forgets what was registered, in this context. */
void gpc_host_memory_forget_context(struct gpc_context *context);

#endif /* GPC_HOST_MEMORY_H */
