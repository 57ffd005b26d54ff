/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a session: what is mapped where in its window, and in the further ranges of
 * addresses that it has reserved.
 *
 * The window's addresses belong to the worker, which reserves them before a session starts and
 * frees them after it.  Executor only.  Memory that the client gives back is unmapped when all work
 * given before is done; a later map of the same addresses waits for that.
 */
#ifndef GPD_MEMORY_H
#define GPD_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_physical;
struct gpd_session;
struct gpd_shared_physical;

/* Memory outside of the window that the session's copies may touch, as a variable is; its owner's.
 */
struct gpd_extent {
	struct gpd_extent *prev, *next; /* of the session's */
	uint64_t address, size;
};

/* What memory needs of the arrays of a session, which are above it (array.h). */
struct gpd_memory_array_ops {
	/* Bytes of arrays that the session or (NULL) sessions that have ended have released, and
	 * that the driver does not have back yet.  Any thread. */
	uint64_t (*leaving_size)(const struct gpd_session *session, int device);
	/* Waits until the driver has those of the session back; whether there were any. */
	bool (*wait_freed)(struct gpd_session *session);
	/* The same for idle arrays of all sessions, when the device is out of memory. */
	bool (*wait_idle_freed)(struct gpd_session *session, int device);
};

/* The part of a session that its memory has, session->memory (memory_state.h).  -ENOMEM. */
int gpd_memory_create(struct gpd_session *session);
/* Nothing is mapped, or the process is about to end. */
void gpd_memory_destroy(struct gpd_session *session);
/* Before the session has a thread.  Without them the session has no arrays. */
void gpd_memory_set_array_ops(struct gpd_session *session, const struct gpd_memory_array_ops *ops);

/* Unmaps everything.  Only when no work of the session is left and its wait queue is empty. */
void gpd_memory_unmap_all(struct gpd_session *session);

/* Maps zeroed memory of the device; whole granules of the window where nothing is mapped, else
 * CUDA_ERROR_INVALID_VALUE.  The caller has accounted for it. */
CUresult gpd_memory_map(struct gpd_session *session, uint64_t address, uint64_t size, int device);

/* The same of the machine's memory, which kernels of all devices reach, and this process.
 * CUDA_ERROR_NOT_SUPPORTED: the driver makes none.  What undoes it is gpMemoryUnmap. */
CUresult gpd_memory_map_host(struct gpd_session *session, uint64_t address, uint64_t size,
			     int device);

/* Whether mappings of the physical memory are still on their way out; then gpd_physical_finish() is
 * called with the last of them. */
bool gpd_memory_release_later(struct gpd_session *session, struct gpd_physical *physical);

/* Maps the beginning of physical memory at such an address. */
CUresult gpd_memory_attach(struct gpd_session *session, uint64_t address, uint64_t size,
			   struct gpd_physical *physical);

/* The memory of which the range is a part, in one mapping that gpMemoryMap or its like has made,
 * and where in it; the mapping is one of its users.  NULL: there is none, or no memory for it. */
struct gpd_shared_physical *gpd_memory_export(struct gpd_session *session, uint64_t address,
					      uint64_t size, uint64_t *offset_p);
/* Maps all of it.  The caller's use of it is the mapping's from then on, if that succeeds. */
CUresult gpd_memory_open(struct gpd_session *session, uint64_t address,
			 struct gpd_shared_physical *shared);

/* Before an allocation is refused: waits for the memory and the arrays that the session has given
 * back; whether there were any. */
bool gpd_memory_wait_freed(struct gpd_session *session);
/* The device has no memory: waits for what the session has given back, then for others' as
 * gpd_account_wait() does; *until is 0 at first.  false: there is none to wait for. */
bool gpd_memory_wait(struct gpd_session *session, int device, uint64_t *until);

/* The device whose memory all of the range is, in one mapping to and from which the session's lanes
 * move bulk by themselves: the mapping is registered when it is first asked for (peer_memory.h).
 * -1: there is none. */
int gpd_memory_get_gpudirect_device(struct gpd_session *session, uint64_t address, uint64_t size);

/* What the session has of the owner's memory, and will have, kernels of the device reach, too. */
CUresult gpd_memory_enable_peer_access(struct gpd_session *session, int device, int owner);
/* The device whose memory is at the address, where `device` does not reach it; -1: it does, or the
 * memory is the driver's own, which the driver copies from anywhere. */
int gpd_memory_get_remote_device(const struct gpd_session *session, uint64_t address, int device);

/* Whether all of [address, address + size) is mapped. */
bool gpd_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* The same, or inside an extent that is open: what copies may touch. */
bool gpd_memory_accessible(struct gpd_session *session, uint64_t address, uint64_t size);
/* Number of bytes from the first byte of the rows to their last.  false: pitch is smaller than
 * width, or the number overflows. */
bool gpd_memory_get_span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p);
/* CUDA_ERROR_INVALID_VALUE unless the session may access all bytes that the rows span. */
CUresult gpd_memory_check_rows(struct gpd_session *session, uint64_t address, uint64_t pitch,
			       uint64_t width, uint64_t height);
void gpd_memory_open_extent(struct gpd_session *session, struct gpd_extent *extent);
void gpd_memory_close_extent(struct gpd_session *session, struct gpd_extent *extent);

#endif /* GPD_MEMORY_H */
