/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of a session that its kernels reach at the client's addresses (docs/host-memory.md):
 * a range of this process's addresses, and arenas in it.  Arenas are registered with the driver by
 * pieces, as no launch goes through meanwhile; a copy may not go over two of them (copy/pieces.h).
 *
 * Executor only.  An arena that the client gives back, and what a session leaves, is unregistered
 * at a quiet moment, by the thread of quiet_jobs.h; the range goes with the last arena, which may
 * be after the session.
 */
#ifndef GPD_HOST_MEMORY_H
#define GPD_HOST_MEMORY_H

#include "server/common/ledger/channel.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_host_arena;
struct gpd_session;

/* What so many bytes count of pinned-memory: the client's copy of them lies elsewhere unless they
 * are shared, and then the worker keeps what both agreed on as well. */
static inline uint64_t
gpd_host_memory_counts(uint64_t size, bool shared)
{
	return shared ? size : 2 * size;
}

/* Before lane 0 is there, on the main thread: a range of addresses, which the client may use
 * without asking for one.  Size 0: there is none, and the client may ask. */
void gpd_host_memory_reserve(struct gpd_session *session, struct gpd_range *range_p);

/* Whether all of [address, address + size) is in one arena. */
bool gpd_host_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* How many bytes from address are in one piece; UINT64_MAX: it is no such memory. */
uint64_t gpd_host_memory_room(const struct gpd_session *session, uint64_t address);

/*
 * Host memory at an address outside the session's range, which the caller maps.  prepare() charges
 * the session and creates an arena, publish() makes it one of the session's, abandon() frees it and
 * returns the charge.
 * Errors: CUDA_ERROR_OUT_OF_MEMORY, also if the quota of pinned memory is used up.
 */
CUresult gpd_host_memory_prepare(struct gpd_session *session, uint64_t address, uint64_t size,
				 struct gpd_host_arena **arena_p);
void gpd_host_memory_publish(struct gpd_session *session, struct gpd_host_arena *arena);
void gpd_host_memory_abandon(struct gpd_session *session, struct gpd_host_arena *arena);

/* What gpHostPlace has placed at the address, is the client's to read and write no more. */
void gpd_host_memory_displace(struct gpd_session *session, uint64_t address);

/* The client answers GP_NOTE_PUBLISH from now on. */
void gpd_host_memory_enable_publish(struct gpd_session *session);
/* Whether the client's program may have written the bytes after data that has not arrived yet:
 * they count once the client has answered GP_NOTE_PUBLISH. */
bool gpd_host_memory_needs_publish(const struct gpd_session *session, uint64_t address,
				   uint64_t size);

/* At the session's end, when no work of it is left. */
void gpd_host_memory_destroy(struct gpd_session *session);

#endif /* GPD_HOST_MEMORY_H */
