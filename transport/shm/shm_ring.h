/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ring buffers of bytes in memory shared by both ends of a connection, one for each direction.
 *
 * The other process may write anything to the memory at any time. An end therefore stores its own
 * position privately, reads each shared variable of the other end once and validates it, and copies
 * bytes out of the ring before it interprets them.
 *
 * Ownership: struct gp_rings owns its mapping until gp_rings_unmap(); the descriptor of the memory
 * stays the caller's.
 * Threads: a ring has one reader and one writer thread, in different processes. gp_ring_write(),
 * gp_ring_must_wake() and gp_ring_wait_writable() are the writer's; the other gp_ring_ functions
 * are the reader's. Only gp_ring_wait_writable() waits. gp_rings_map() and gp_rings_unmap() require
 * that no other thread uses the rings.
 * Units: bytes.
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

/* Size of a cache line in bytes: the ends do not share the lines that they write. */
#define GP_RING_LINE 64

/* Control variables of a ring, in shared memory. Each is written by one end only, except
 * writer_waits and reader_waits, which the other end clears. */
struct gp_ring_header {
	/* position up to which bytes were written, modulo 2^32; set by the writer */
	_Alignas(GP_RING_LINE) atomic_uint tail;
	atomic_uint writer_closed; /* nonzero: no more bytes will be written */
	/* futex, nonzero while the writer sleeps until the reader has freed space */
	_Alignas(GP_RING_LINE) atomic_uint writer_waits;
	/* position up to which bytes were read, modulo 2^32; set by the reader */
	_Alignas(GP_RING_LINE) atomic_uint head;
	atomic_uint reader_closed; /* nonzero: no more bytes will be read */
	/* Nonzero while the memory has its pages, see gp_rings_are_discarded(). */
	atomic_uint pages_present;
	/* nonzero: the reader has requested a wake-up (gp_ring_arm()) */
	_Alignas(GP_RING_LINE) atomic_uint reader_waits;
};

/* One end of a ring, in private memory. */
struct gp_ring {
	struct gp_ring_header *header; /* in shared memory */
	uint8_t *bytes;                /* in shared memory */
	/* size of the ring in bytes, a power of two */
	uint32_t size;
	uint32_t at;   /* position of this end, modulo 2^32 */
	uint32_t head; /* writer: position of the reader when last read */
};

/* Both rings of a connection in one mapping. */
struct gp_rings {
	void *memory;
	size_t memory_size;
	bool is_creator;        /* this end has created the memory */
	struct gp_ring in, out; /* read by this end, written by this end */
};

/* Returns the size of the sealed memory (sealed_memory.h) for two rings of ring_size bytes each. */
size_t gp_rings_get_memory_size(size_t ring_size);
/* Maps the rings from the descriptor, which may then be closed. memory_size: the file's size, from
 * gp_sealed_check() (sealed_memory.h); a larger number would cause SIGBUS. maker: this end has
 * created the memory (is_creator). Returns 0; GP_E_INVALID: no valid ring size has this memory
 * size; or a negative errno. *rings is unchanged after an error. Undone by gp_rings_unmap(). */
GP_MUST_CHECK int gp_rings_map(struct gp_rings *rings, int fd, size_t memory_size, bool maker);
/* Unmaps the rings and zeroes *rings; no effect if they are not mapped. */
void gp_rings_unmap(struct gp_rings *rings);
/* Called by the creator of the memory when the connection ends: frees the memory's pages, even
 * while the peer maps it. all false: bytes that the peer has not read stay. all true: all pages are
 * freed; gp_rings_are_discarded() becomes true at the peer before any byte is zeroed. */
void gp_rings_discard(struct gp_rings *rings, bool all);
/* For the end that has not created the memory: returns whether all pages were freed. Must be
 * checked after control variables or bytes were read, because these may then be zeros. */
bool gp_rings_are_discarded(const struct gp_rings *rings);
/* Closes this end in both directions and wakes writers of both ends that wait for space; the caller
 * wakes readers. May be called by any thread, and repeatedly. */
void gp_rings_close(struct gp_rings *rings);

/* Returns the number of readable bytes, 0 if there are none (also at the end), or -EPROTO: the peer
 * has corrupted the ring. */
ssize_t gp_ring_get_used(const struct gp_ring *ring);
/* Returns whether the writer is closed, so that nothing follows the bytes in the ring. Must be
 * called before gp_ring_get_used(). */
bool gp_ring_is_closed(const struct gp_ring *ring);
/* Reads as many bytes as are available and fit. Returns their number, 0 if there are none, or
 * -EPROTO as gp_ring_get_used(). Wakes a writer that waits for space, once half of the ring is
 * free. */
ssize_t gp_ring_read(struct gp_ring *ring, const struct iovec *iov, int count);
/* Requests a wake-up at the next write; the caller must then call gp_ring_get_used() once more
 * before it sleeps. */
void gp_ring_arm(struct gp_ring *ring);
/* Cancels the request of gp_ring_arm(). */
void gp_ring_disarm(struct gp_ring *ring);

/* Writes as many bytes as there is space for, at most 64 KiB. Returns their number; 0: the ring is
 * full; -EPIPE: the reader is closed, and may or may not have read the bytes; -EPROTO: the peer has
 * corrupted the ring. */
ssize_t gp_ring_write(struct gp_ring *ring, const struct iovec *iov, int count);
/* After gp_ring_write(): returns whether the reader has requested a wake-up, and clears the
 * request. The caller then wakes the reader. */
bool gp_ring_must_wake(struct gp_ring *ring);
/* Waits until the ring has space or the reader is closed, for at most 0.1 s. Does not detect that
 * the reader's process has ended. */
void gp_ring_wait_writable(struct gp_ring *ring);

#endif /* GP_SHM_RING_H */
