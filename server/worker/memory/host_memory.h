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

#include <stdbool.h>
#include <stdint.h>

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

/* What gpHostPlace has placed at the address, is the client's to read and write no more. */
void gpd_host_memory_displace(struct gpd_session *session, uint64_t address);

/* At the session's end, when no work of it is left. */
void gpd_host_memory_destroy(struct gpd_session *session);

#endif /* GPD_HOST_MEMORY_H */
