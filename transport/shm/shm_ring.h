/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rings of bytes in memory that both ends of a connection map, one for each direction.
 *
 * The other process may write anything anywhere into it at any time.  So an end keeps its own
 * positions to itself, reads each word of the other end once, and checks it; bytes are copied out
 * before anybody looks at them.  A ring has one reader and one writer, each a thread of one end;
 * what a function needs is said by its name: gp_ring_write() and the like are the writer's, the
 * others the reader's.
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

/* Powers of two; the daemon chooses. */
#define GP_RING_SIZE_MIN ((size_t)64 << 10)
#define GP_RING_SIZE_MAX ((size_t)16 << 20)

#define GP_RING_LINE 64

/* A word is written by one end only but for the two waits, which the other end takes back. */
struct gp_ring_header {
	_Alignas(GP_RING_LINE) atomic_uint tail; /* the writer's */
	atomic_uint writer_closed;
	_Alignas(GP_RING_LINE) atomic_uint writer_waits; /* a futex */
	_Alignas(GP_RING_LINE) atomic_uint head;         /* the reader's */
	atomic_uint reader_closed;
	atomic_uint pages_present; /* not 0 as long as the memory has its pages:
				      gp_rings_are_discarded() */
	_Alignas(GP_RING_LINE) atomic_uint reader_waits;
};

struct gp_ring {
	struct gp_ring_header *header; /* shared */
	uint8_t *bytes;                /* shared */
	uint32_t size;
	uint32_t at;   /* how far this end has come, modulo 2^32 */
	uint32_t head; /* the writer's: how far the reader had come when it was looked at */
};

/* Both rings' memory in one mapping. */
struct gp_rings {
	void *memory;
	size_t memory_size;
	bool is_creator;
	struct gp_ring in, out;
};

/* The bytes of the sealed memory for two rings of this size. */
size_t gp_rings_get_memory_size(size_t ring_size);
/* Maps them.  maker: this end has made the memory.  0, GP_E_INVALID: the size is none that
 * gp_rings_get_memory_size() gives; or -errno. */
GP_MUST_CHECK int gp_rings_map(struct gp_rings *rings, int fd, size_t memory_size, bool maker);
void gp_rings_unmap(struct gp_rings *rings);
/* The maker, at its end: gives the memory's pages back to the system, whoever still has the memory.
 * Unless all are to go the peer may still read what was written for it; if all go,
 * gp_rings_are_discarded() is true at the other end before a byte of it is zero. */
void gp_rings_discard(struct gp_rings *rings, bool all);
/* Not the maker: whether the pages were given back.  To be asked after words or bytes were read. */
bool gp_rings_are_discarded(const struct gp_rings *rings);
/* This end is over, in both directions; wakes a writer at the other one.  Any thread. */
void gp_rings_close(struct gp_rings *rings);

/* Bytes that can be read, 0 also at the end, or -EPROTO: the other end has broken the ring. */
ssize_t gp_ring_get_used(const struct gp_ring *ring);
/* Whether nothing will come behind what is there: to be asked before gp_ring_get_used(). */
bool gp_ring_is_closed(const struct gp_ring *ring);
/* Takes up to what fits, as gp_ring_get_used() says; wakes the writer if it waits for room. */
ssize_t gp_ring_read(struct gp_ring *ring, const struct iovec *iov, int count);
/* The writer shall ring when it writes; after that gp_ring_get_used() is to be asked once more. */
void gp_ring_arm(struct gp_ring *ring);
void gp_ring_disarm(struct gp_ring *ring);

/* Bytes that were written, 0: there is no room; -EPIPE: the reader is over, and may have them;
 * -EPROTO. */
ssize_t gp_ring_write(struct gp_ring *ring, const struct iovec *iov, int count);
/* Behind gp_ring_write(): whether the reader sleeps and is to be woken, which it asks for once. */
bool gp_ring_must_wake(struct gp_ring *ring);
/* Waits for room, a tenth of a second at most; the reader's end is not noticed here. */
void gp_ring_wait_writable(struct gp_ring *ring);

#endif /* GP_SHM_RING_H */
