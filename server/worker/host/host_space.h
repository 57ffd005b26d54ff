/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of a session that its kernels can access at the client's addresses
 * (docs/host-memory.md): a range of this process's address space with arenas in it. Arenas are
 * registered with the driver in pieces, because registering blocks launches; a copy must not cross
 * from one piece to the next (copy/pieces.h).
 *
 * An arena that the client unmaps, or that is left at the session's end, is unregistered by the
 * thread of idle_jobs.h when the device is idle. The range is freed with its last arena, which may
 * outlive the session.
 *
 * Ownership: session->host_memory; after the session's end, its remaining arenas.
 * Threads: executor only, unless noted.
 */
#ifndef GPD_HOST_SPACE_H
#define GPD_HOST_SPACE_H

#include "server/common/ledger/channel.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_host_arena;
struct gpd_session;

/* Bytes charged to pinned-memory: if the arena is not shared, the client has its own copy, and the
 * worker also stores the content that both ends agreed on. */
static inline uint64_t
gpd_host_memory_counts(uint64_t size, bool shared)
{
	return shared ? size : 2 * size;
}

/* Main thread, before lane 0 exists: reserves a range of addresses that the client may use without
 * a request. Size 0: none is free; the client may request one later. */
void gpd_host_memory_reserve(struct gpd_session *session, struct gpd_range *range_p);

/* Whether all of [address, address + size) is in one arena. */
bool gpd_host_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* Bytes from address to the end of its piece; UINT64_MAX: not host memory. */
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

/* Ends the client's access to memory of gpHostPlace at this address. */
void gpd_host_memory_displace(struct gpd_session *session, uint64_t address);

/* The client answers GP_NOTE_PUBLISH from now on. */
void gpd_host_memory_enable_publish(struct gpd_session *session);
/* Whether the client's program may have written the bytes after data that has not arrived yet:
 * they count once the client has answered GP_NOTE_PUBLISH. */
bool gpd_host_memory_needs_publish(const struct gpd_session *session, uint64_t address,
				   uint64_t size);

/* Releases the host memory at the session's end, when it has no work left. */
void gpd_host_memory_destroy(struct gpd_session *session);

#endif /* GPD_HOST_SPACE_H */
