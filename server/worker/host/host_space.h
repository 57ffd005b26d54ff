/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of a session: memory that its kernels can access at the client's addresses
 * (docs/host-memory.md). It consists of a reserved range of this process's addresses and of arenas
 * (host_arena.h), which are mappings registered with the driver. Arenas are in the range, where
 * they are registered in several registrations, or at other addresses where the client has placed
 * them (gpHostPlace). A copy must not cross from one registration to the next
 * (copy/registration_split.h).
 *
 * An arena that the client unmaps, or that is left at the session's end, is unregistered by the
 * thread of quiesce_jobs.h when the device is nearly idle. The range is freed with its last arena,
 * which may outlive the session.
 *
 * Ownership: session->host_memory until the session's end, then the remaining arenas.
 * Threads: executor only, unless noted.
 * Units: bytes.
 */
#ifndef GPD_HOST_SPACE_H
#define GPD_HOST_SPACE_H

#include "server/common/ledger/channel.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_host_arena;
struct gpd_session;

/* Returns the bytes to charge to the pinned-memory quota for an arena of size bytes. If it is not
 * shared, that is, the client does not map the same pages, the worker also stores the content that
 * both ends have agreed on (host_arena.h, shadow). */
static inline uint64_t
gpd_host_memory_counts(uint64_t size, bool shared)
{
	return shared ? size : 2 * size;
}

/* Creates session->host_memory, freed by gpd_host_memory_destroy(), and reserves a range of
 * addresses that the client may use without a request. Sets *range_p to it; size 0: no range is
 * free, or out of memory, and session->host_memory may then be NULL. The client may request a range
 * later (gpHostReserve). Main thread, before the session has a connection. */
void gpd_host_memory_reserve(struct gpd_session *session, struct gpd_range *range_p);

/* Returns whether all of [address, address + size) is in one arena. */
bool gpd_host_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* Returns the number of bytes from address to the end of its registration; UINT64_MAX if the
 * address is not in the session's range and therefore has no registrations. */
uint64_t gpd_host_memory_get_registration_rest(const struct gpd_session *session, uint64_t address);

/*
 * Prepares to add host memory at an address outside of the session's range, which the caller maps
 * itself. Charges the session and creates an arena, which the caller owns and passes to
 * gpd_host_memory_publish() or gpd_host_memory_abandon(). Does not check the range:
 * gpd_memory_map_host() (memory/memory.h), which the caller calls next, rejects ranges that overlap
 * or are not the session's. May block for about 2 s, until memory of ended sessions is freed.
 * Returns CUDA_SUCCESS and sets *arena_p; or CUDA_ERROR_OUT_OF_MEMORY, also if the quota of pinned
 * memory or the number of arenas (of the session, or of the process) is exhausted. On failure
 * nothing is charged.
 */
CUresult gpd_host_memory_prepare(struct gpd_session *session, uint64_t address, uint64_t size,
				 struct gpd_host_arena **arena_p);
/* Adds a prepared arena, whose pages are mapped and registered, to the host memory of the session,
 * which owns it from now on. Undone by gpd_host_memory_displace(), or at the session's end. */
void gpd_host_memory_publish(struct gpd_session *session, struct gpd_host_arena *arena);
/* Frees a prepared arena that was not published, and uncharges it. */
void gpd_host_memory_abandon(struct gpd_session *session, struct gpd_host_arena *arena);

/* Removes and frees the arena of gpHostPlace that contains this address, before the caller unmaps
 * it. The charge stays until the memory is unmapped in the driver (memory/memory_release.c). Does
 * nothing if there is no such arena. */
void gpd_host_memory_displace(struct gpd_session *session, uint64_t address);

/* Stores that the client supports GP_NOTE_PUBLISH (protocol/frame.h): it sends changed host memory
 * on request. No effect without session->host_memory. */
void gpd_host_memory_enable_publish(struct gpd_session *session);
/* Returns whether the client's program may have written these bytes after data that has not arrived
 * yet. Always false for bytes outside of the session's host memory, and unless
 * gpd_host_memory_enable_publish() was called. Their value may then be used only when the client
 * has replied to GP_NOTE_PUBLISH. */
bool gpd_host_memory_needs_publish(const struct gpd_session *session, uint64_t address,
				   uint64_t size);

/* Releases the host memory at the session's end, when the session has no work left and its watch
 * thread (coherence_fetch.h) has ended, and sets session->host_memory to NULL. Arenas that are
 * still registered are freed later by the thread of quiesce_jobs.h. The session's charge for them
 * ends now; until they are freed, new charges of the tenant leave room for them. Placed arenas are
 * freed now; their charge ends with the session. Does nothing if session->host_memory is NULL. */
void gpd_host_memory_destroy(struct gpd_session *session);

#endif /* GPD_HOST_SPACE_H */
