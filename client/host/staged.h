/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the worker shares, through which short copies come to pageable memory: the GPU writes
 * into it, so the bytes are copied once, by the client, and not twice through a ring.
 *
 * A session has one piece of it, which counts as pinned memory of its own, from its third copy on
 * to its end.  Any thread may call; one at a time has it.
 */
#ifndef GPC_STAGED_H
#define GPC_STAGED_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;

#define GPC_STAGED_SIZE ((uint64_t)1536 << 10)

/* GPC_STAGED_SIZE bytes, at the same address here and there.  false: the session's memory is not
 * shared, its quota has no room, or another thread has it. */
bool gpc_staged_take(struct gpc_context *context, uint64_t *address_p);
void gpc_staged_give(uint64_t address);

#endif /* GPC_STAGED_H */
