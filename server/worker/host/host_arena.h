/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena of a session's host memory (host_space.h): pages at addresses chosen by the worker,
 * registered with the driver at the same addresses. They are registered in pieces, because the
 * driver blocks all launches of all sessions while it registers.
 *
 * Ownership: host_space.c, until gpd_host_arena_free().
 * Threads: executor; after the arena is unmapped by the client, the thread of idle_jobs.h.
 * Errors: CUresult.
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
	struct gpd_host_arena *next;                      /* list of unmapped arenas */
	struct gpd_host_arena *next_shared, *prev_shared; /* of all sessions; host_arena.c's lock */
	uint64_t address, size;
	uint64_t registered; /* bytes registered, from its address */
	uint8_t *shadow;     /* Content that both ends have agreed on, followed by the run bitmap
				(protocol/host_run_bitmap.h); NULL: nothing was sent or fetched yet. */
	void *request;       /* gpd_wait_request() of the unmap */
	bool shared;         /* the client maps the same pages */
	bool punches;        /* the client has its file: unmapping also punches the file's pages */
	bool placed;         /* from gpHostPlace: unmapped by memory.h */
};

/* Maps the arena over the session's reservation, registers it and, if it is shared, passes its file
 * to the client. On failure everything is undone. */
CUresult gpd_host_arena_create(struct gpd_session *session, struct gpd_host_arena *arena,
			       bool shared);

/* Unregisters one piece and frees its pages. Returns true when only the reserved addresses are
 * left. */
bool gpd_host_arena_shrink(struct gpd_host_arena *arena);

/* Any thread. Called before the process ends: frees the pages of all shared arenas, which would
 * otherwise stay allocated while clients have their files. */
void gpd_host_arena_empty_all(void);

/* Bytes from address to the end of its piece. */
uint64_t gpd_host_arena_room(uint64_t address);

/* Frees the arena and its shadow; nothing of it may still be registered. */
void gpd_host_arena_free(struct gpd_host_arena *arena);

/* Any thread. Parses GPUPOOL_HOST_PIECE_MIB into bytes; NULL or empty: the default size of a piece.
 * On an invalid value returns false and the default. */
bool gpd_host_piece_parse(const char *text, uint64_t *size_p);

#endif /* GPD_HOST_ARENA_H */
