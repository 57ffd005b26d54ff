/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena of a session's host memory (host_space.h): a mapping of pages at an address within the
 * session's reserved range, registered with the driver so that kernels can access it at the same
 * address. It is registered in pieces (8 MiB by default), because the driver blocks all launches of
 * all sessions while it registers.
 *
 * Ownership: the session's struct gpd_host_memory, in its list of mapped arenas and then in its
 * list of unmapped ones, until gpd_host_arena_free().
 * Threads: executor; after the client has unmapped the arena, only the thread of idle_jobs.h.
 * Unless noted.
 * Errors: CUresult.
 * Units: bytes.
 */
#ifndef GPD_HOST_ARENA_H
#define GPD_HOST_ARENA_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_host_memory;
struct gpd_session;

struct gpd_host_arena {
	struct gpd_host_memory *memory; /* borrowed; outlives the arena */
	struct gpd_host_arena *next; /* in the list of unmapped arenas (gpd_host_memory.leaving) */
	/* List of all shared arenas of all sessions; host_arena.c's lock. */
	struct gpd_host_arena *next_shared, *prev_shared;
	uint64_t address, size;
	uint64_t registered; /* number of bytes registered, from `address` */
	/* Content that both ends have agreed on, followed by the run bitmap
	 * (protocol/host_run_bitmap.h); owned. NULL: nothing was sent or fetched yet. */
	uint8_t *shadow;
	void *request; /* gpd_wait_request() of the unmap call, for its reply */
	bool shared;   /* the client maps the same pages */
	/* The client has the arena's file: unmapping also removes the pages from the file. */
	bool punches;
	bool placed; /* outside of the reserved range (gpHostPlace): memory.h maps and unmaps it */
};

/* Maps the arena's range over the session's reservation and registers it; blocks launches
 * meanwhile. The caller has set memory, address and size. shared: maps a file that is passed to the
 * client; CUDA_ERROR_NOT_SUPPORTED if the connection cannot pass descriptors or the driver uses
 * another device address. On failure nothing is left mapped or registered, and the caller still
 * owns the arena. */
CUresult gpd_host_arena_create(struct gpd_session *session, struct gpd_host_arena *arena,
			       bool shared);

/* Unregisters the last registered piece and frees its pages; blocks launches until no kernel runs.
 * Returns true when nothing is registered any more; the caller repeats the call until then. */
bool gpd_host_arena_shrink(struct gpd_host_arena *arena);

/* Frees the pages of all shared arenas, which would otherwise stay allocated while clients have
 * their files. To be called before the process ends. Any thread. */
void gpd_host_arena_empty_all(void);

/* Returns the number of bytes from address to the end of its piece. A copy must not cross that
 * end. */
uint64_t gpd_host_arena_room(uint64_t address);

/* Frees the arena and its shadow. Nothing of it may still be registered, and it must not be in a
 * list of its memory. */
void gpd_host_arena_free(struct gpd_host_arena *arena);

/* Parses the text of GPUPOOL_HOST_PIECE_MIB and sets *size_p to the size of a piece in bytes. NULL
 * or "" means the default size. Returns false and sets the default if the value is invalid. Any
 * thread. */
bool gpd_host_piece_parse(const char *text, uint64_t *size_p);

#endif /* GPD_HOST_ARENA_H */
