/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ring buffers of bytes in memory shared by both ends of a connection, one for each direction.
 *
 * The other process may write anything to the memory at any time. An end therefore stores its own
 * position privately, reads each word of the other end once and validates it, and copies bytes out
 * of the ring before it interprets them.
 *
 * Threads: a ring has one reader and one writer thread, in different processes. gp_ring_write(),
 * gp_ring_must_wake() and gp_ring_wait_writable() are the writer's; the other gp_ring_ functions
 * are the reader's.
 */
#ifndef GP_SHM_RING_H
#define GP_SHM_RING_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Limits of a ring's size, a power of two chosen by the daemon. */
#define GP_RING_SIZE_MIN ((size_t)64 << 10)
#define GP_RING_SIZE_MAX ((size_t)16 << 20)

#define GP_RING_LINE 64

/* Each word is written by one end only, except the two waits, which the other end clears. */
struct gp_ring_header {
	_Alignas(GP_RING_LINE) atomic_uint tail; /* written by the writer */
	atomic_uint writer_closed;
	_Alignas(GP_RING_LINE) atomic_uint writer_waits; /* a futex */
	_Alignas(GP_RING_LINE) atomic_uint head;         /* written by the reader */
	atomic_uint reader_closed;
	/* Nonzero while the memory has its pages, see gp_rings_are_discarded(). */
	atomic_uint pages_present;
	_Alignas(GP_RING_LINE) atomic_uint reader_waits;
};

struct gp_ring {
	struct gp_ring_header *header; /* in shared memory */
	uint8_t *bytes;                /* in shared memory */
	uint32_t size;
	uint32_t at;   /* position of this end, modulo 2^32 */
	uint32_t head; /* writer: the reader's position when last read */
};

/* Both rings in one mapping. */
struct gp_rings {
	void *memory;
	size_t memory_size;
	bool is_creator;
	struct gp_ring in, out;
};

/* Returns the size of the sealed memory for two rings of this size. */
size_t gp_rings_get_memory_size(size_t ring_size);
/* Maps the rings. maker: this end has created the memory. Returns 0; GP_E_INVALID: not a size that
 * gp_rings_get_memory_size() returns; or a negative errno. */
GP_MUST_CHECK int gp_rings_map(struct gp_rings *rings, int fd, size_t memory_size, bool maker);
void gp_rings_unmap(struct gp_rings *rings);
/* Called by the creator at the end: frees the memory's pages, even while the peer maps it. all
 * false: bytes that the peer has not read stay. all true: gp_rings_are_discarded() becomes true at
 * the peer before any byte is zeroed. */
void gp_rings_discard(struct gp_rings *rings, bool all);
/* For the other end: whether the pages were freed. Must be checked after words or bytes were
 * read. */
bool gp_rings_are_discarded(const struct gp_rings *rings);
/* Closes this end in both directions and wakes a waiting writer of the peer. Any thread. */
void gp_rings_close(struct gp_rings *rings);

/* Returns the readable bytes, 0 also at the end, or -EPROTO: the peer has corrupted the ring. */
ssize_t gp_ring_get_used(const struct gp_ring *ring);
/* Whether the writer is closed, so that nothing follows the bytes in the ring. Must be called
 * before gp_ring_get_used(). */
bool gp_ring_is_closed(const struct gp_ring *ring);
/* Reads as many bytes as fit; returns as gp_ring_get_used(). Wakes a writer that waits for room. */
ssize_t gp_ring_read(struct gp_ring *ring, const struct iovec *iov, int count);
/* Requests a wake-up at the next write; the caller must then call gp_ring_get_used() once more
 * before it sleeps. gp_ring_disarm() cancels the request. */
void gp_ring_arm(struct gp_ring *ring);
void gp_ring_disarm(struct gp_ring *ring);

/* Returns the bytes written; 0: no room; -EPIPE: the reader is closed, and may or may not have read
 * the bytes; -EPROTO. */
ssize_t gp_ring_write(struct gp_ring *ring, const struct iovec *iov, int count);
/* After gp_ring_write(): whether the reader has requested a wake-up; clears the request. */
bool gp_ring_must_wake(struct gp_ring *ring);
/* Waits for room for at most 0.1 s. Does not detect that the reader's process has ended. */
void gp_ring_wait_writable(struct gp_ring *ring);

#endif /* GP_SHM_RING_H */
