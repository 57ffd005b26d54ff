/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena of a session's host memory (host_space.h): a mapping of pages that kernels can access at
 * the same address as the client. An arena within the session's reserved range is mapped and
 * registered with the driver here, in registrations of 8 MiB by default, because the driver blocks
 * all launches of all sessions while it registers. An arena at another address was placed by the
 * client (gpHostPlace), and is mapped by memory/memory.h; for such an arena only
 * gpd_host_arena_free() is called.
 *
 * Life cycle: host_space.c calls gpd_host_arena_create() when the client maps memory. When the
 * client has unmapped it and the session's work is done, a job of device/quiesce_jobs.h calls
 * gpd_host_arena_shrink() until it returns true, and then gpd_host_arena_free().
 * Ownership: the session's struct gpd_host_memory (host_space_internal.h), in its list of mapped
 * arenas and then in its list `leaving` of unmapped arenas that are not freed yet.
 * Threads: the executor, unless a function states otherwise. After the client has unmapped the
 * arena, only the responder and then the thread of device/quiesce_jobs.h use it.
 * The functions that call the driver need a current context.
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
	/* Next in gpd_host_memory.leaving, the list of unmapped arenas that are not freed yet. */
	struct gpd_host_arena *next;
	/* Members of the list of all shared arenas of all sessions, protected by a lock in
	 * host_arena.c. */
	struct gpd_host_arena *next_shared, *prev_shared;
	uint64_t address, size; /* range of the arena, equal at both ends */
	uint64_t registered;    /* bytes registered from `address` on; 0 if placed */
	/* Shadow: content of the arena that both ends have agreed on, with which the present
	 * content is compared to find changes, followed by the run bitmap
	 * (protocol/host_run_bitmap.h). Owned. NULL: nothing was sent or fetched yet. */
	uint8_t *shadow;
	/* gpd_wait_request() (stream/responder.h) of the client's unmap call, through which it is
	 * answered */
	void *reply_token;
	bool shared; /* the client maps the same pages; set by host_space.c */
	/* The client may have the arena's file: unmapping also removes the pages from the file. Set
	 * by gpd_host_arena_create(). */
	bool punches;
	/* Placed by gpHostPlace, outside of the reserved range: mapped and unmapped by
	 * server/worker/memory/memory.h. */
	bool placed;
};

/*
 * Maps the arena's range, which must be inside the session's reservation and free, over the
 * reservation and registers it; blocks launches meanwhile. The caller has set memory, address and
 * size (multiples of the system's page size), and `shared` as the parameter; the other members are
 * zero. shared: maps a file that is passed to the client. Blocks, also for pauses of 0.3 ms between
 * registrations. Returns CUDA_SUCCESS; on failure nothing is left mapped or registered. The caller
 * still owns the arena in both cases. Undone by gpd_host_arena_shrink() and gpd_host_arena_free().
 *
 * CUDA_ERROR_NOT_SUPPORTED: the driver uses another device address; or, with shared, the connection
 * cannot pass descriptors.
 * CUDA_ERROR_OPERATING_SYSTEM: the file could not be passed to the client.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of the driver.
 */
CUresult gpd_host_arena_create(struct gpd_session *session, struct gpd_host_arena *arena,
			       bool shared);

/* Undoes the last registration, frees its pages and reserves its addresses again; the
 * driver waits until no kernel runs, and blocks launches meanwhile. Returns true when nothing is
 * registered any more; the caller repeats the call until then. */
bool gpd_host_arena_shrink(struct gpd_host_arena *arena);

/* Frees the pages of all shared arenas, which would otherwise stay allocated while clients have
 * their files. To be called before the process ends. Any thread. */
void gpd_host_arena_empty_all(void);

/* Returns the number of bytes from address to the end of its registration. A copy must not cross
 * that end. Registrations are aligned to their size, so the result depends on the address alone and
 * is at least 1, also for an address outside of all arenas. Any thread. */
uint64_t gpd_host_arena_get_registration_rest(uint64_t address);

/* Frees the arena and its shadow. Nothing of it may still be registered, and it must not be in a
 * list of its memory. */
void gpd_host_arena_free(struct gpd_host_arena *arena);

/* Parses the text of GPUPOOL_HOST_PIECE_MIB and sets *size_p to the size of a registration in
 * bytes. NULL or "" means the default size. Returns false and sets the default if the value is
 * invalid. Any thread. */
bool gpd_host_registration_parse(const char *text, uint64_t *size_p);

#endif /* GPD_HOST_ARENA_H */
