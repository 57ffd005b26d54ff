/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One arena of a session's host memory (host_memory.h): pages at addresses of our choice, which the
 * driver has registered at the same addresses.  It is registered by pieces, since no launch of any
 * session goes through while the driver registers.  Executor, then the thread of quiet_jobs.h.
 */
#ifndef GPD_HOST_ARENA_H
#define GPD_HOST_ARENA_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_host_memory;
struct gpd_session;

struct gpd_host_arena {
	struct gpd_host_memory *memory;
	struct gpd_host_arena *next;                      /* of those that leave */
	struct gpd_host_arena *next_shared, *prev_shared; /* of all sessions; host_arena.c's lock */
	uint64_t address, size;
	uint64_t registered; /* so many bytes, from its address */
	uint8_t *shadow;     /* what both ends agreed on; NULL: nothing was sent or fetched yet.
			      * Behind it the marks (protocol/host_marks.h) */
	void *request;       /* of who gives it back: gpd_wait_request() */
	bool shared;         /* the client has the same */
	bool punches;        /* the client has its file: its pages are taken from it, too */
	bool placed;         /* it is a chunk of the session's memory (memory.h), which unmaps it */
};

/* Maps it over the session's own reservation, registers it, and passes its file to the client if it
 * is shared.  Otherwise nothing of it is left. */
CUresult gpd_host_arena_create(struct gpd_session *session, struct gpd_host_arena *arena,
			       bool shared);

/* Unregisters one piece and frees its pages; true: only the addresses are left, reserved. */
bool gpd_host_arena_shrink(struct gpd_host_arena *arena);

/* Before the process ends: frees the pages of all arenas of all sessions that clients have, as they
 * would stay.  Any thread. */
void gpd_host_arena_empty_all(void);

/* How many bytes from address are in one piece. */
uint64_t gpd_host_arena_room(uint64_t address);

/* With its shadow; nothing of it is registered any more. */
void gpd_host_arena_free(struct gpd_host_arena *arena);

/* What GPUPOOL_HOST_PIECE_MIB says, in bytes; NULL or empty: the usual size of a piece.  false: it
 * is no size, and that is the usual one.  Any thread. */
bool gpd_host_piece_parse(const char *text, uint64_t *size_p);

#endif /* GPD_HOST_ARENA_H */
