/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/shm_ring.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define HEADER_SIZE ((size_t)4096)
/* Bytes copied before they are published, so that both ends copy concurrently. */
#define WRITE_MAX ((size_t)64 << 10)
/* Polls for room before a writer sleeps: about as long as a reader needs for a part of the ring. */
#define ROOM_POLLS 500
#define ROOM_WAIT_NS 100000000
#define ROOM_NAP_NS 1000000
/* The size of a short message. */
#define PREFETCH_LINES 3

_Static_assert(2 * sizeof(struct gp_ring_header) <= HEADER_SIZE, "the words fit their page");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics work between processes");

size_t
gp_rings_get_memory_size(size_t ring_size)
{
	return HEADER_SIZE + 2 * ring_size;
}

static bool
is_ring_size(size_t size)
{
	return size >= GP_RING_SIZE_MIN && size <= GP_RING_SIZE_MAX && (size & (size - 1)) == 0;
}

int
gp_rings_map(struct gp_rings *rings, int fd, size_t memory_size, bool maker)
{
	size_t size = memory_size > HEADER_SIZE ? (memory_size - HEADER_SIZE) / 2 : 0;
	struct gp_ring_header *words;
	struct gp_ring ring[2];

	if (!is_ring_size(size) || gp_rings_get_memory_size(size) != memory_size)
		return GP_E_INVALID;
	words = mmap(NULL, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (words == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < 2; i++)
		ring[i] = (struct gp_ring){
			.header = words + i,
			.bytes = (uint8_t *)words + HEADER_SIZE + i * size,
			.size = (uint32_t)size,
		};
	*rings = (struct gp_rings){
		.memory = words,
		.memory_size = memory_size,
		.is_creator = maker,
		.in = ring[maker ? 0 : 1],
		.out = ring[maker ? 1 : 0],
	};
	if (!maker)
		atomic_store(&rings->in.header->pages_present, 1);
	return 0;
}

static void
pages_punch(uint8_t *bytes, size_t size)
{
	if (size)
		(void)madvise(bytes, size, MADV_REMOVE);
}

/* Frees the whole pages between two positions, modulo the ring's size. */
static void
ring_punch(const struct gp_ring *ring, uint32_t from, uint32_t to)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint32_t start = from & (ring->size - 1), left = to - from;
	uint32_t first = (page - start % page) % page;
	uint32_t size = left > first ? (left - first) / page * page : 0;
	uint32_t at = (start + first) & (ring->size - 1);
	uint32_t part = size < ring->size - at ? size : ring->size - at;

	pages_punch(ring->bytes + at, part);
	pages_punch(ring->bytes, size - part);
}

void
gp_rings_discard(struct gp_rings *rings, bool all)
{
	struct gp_ring *out = &rings->out;
	uint32_t head;

	if (!rings->memory)
		return;
	if (all) {
		pages_punch(rings->memory, HEADER_SIZE);
		pages_punch((uint8_t *)rings->memory + HEADER_SIZE,
			    rings->memory_size - HEADER_SIZE);
		return;
	}
	pages_punch(rings->in.bytes, rings->in.size);
	head = atomic_load(&out->header->head);
	if (out->at - head <= out->size)
		ring_punch(out, out->at, head + out->size);
}

bool
gp_rings_are_discarded(const struct gp_rings *rings)
{
	return !rings->is_creator && atomic_load(&rings->in.header->pages_present) == 0;
}

void
gp_rings_unmap(struct gp_rings *rings)
{
	if (rings->memory)
		(void)munmap(rings->memory, rings->memory_size);
	*rings = (struct gp_rings){ 0 };
}

static void
ring_wake_writer(struct gp_ring *ring)
{
	atomic_store(&ring->header->writer_waits, 0);
	(void)syscall(SYS_futex, &ring->header->writer_waits, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void
gp_rings_close(struct gp_rings *rings)
{
	if (!rings->memory)
		return;
	atomic_store(&rings->out.header->writer_closed, 1);
	atomic_store(&rings->in.header->reader_closed, 1);
	ring_wake_writer(&rings->in);
	/* Wakes a writer of this end, which is another thread. */
	ring_wake_writer(&rings->out);
}

/* ThreadSanitizer sees only this process. Through the peer, what this end did before a write
 * happens before what it does after a later read; for the two directions of a socket,
 * ThreadSanitizer assumes the same. Both rings of a connection have their headers in one page. */
static void
ring_order_for_tsan(const struct gp_ring *ring, bool reads)
{
#ifdef __SANITIZE_THREAD__
	void *page = (uint8_t *)ring->header - (uintptr_t)ring->header % HEADER_SIZE;

	if (reads)
		__tsan_acquire(page);
	else
		__tsan_release(page);
#else
	(void)ring;
	(void)reads;
#endif
}

ssize_t
gp_ring_get_used(const struct gp_ring *ring)
{
	uint32_t used = atomic_load(&ring->header->tail) - ring->at;

	if (used)
		ring_order_for_tsan(ring, true);
	return used > ring->size ? -EPROTO : (ssize_t)used;
}

bool
gp_ring_is_closed(const struct gp_ring *ring)
{
	return atomic_load(&ring->header->writer_closed) != 0;
}

/* Copies between the ring and memory, with wraparound. */
static void
ring_copy_out(const struct gp_ring *ring, uint32_t at, uint8_t *to, size_t size)
{
	size_t start = at & (ring->size - 1);
	size_t first = ring->size - start < size ? ring->size - start : size;

	memcpy(to, ring->bytes + start, first);
	memcpy(to + first, ring->bytes, size - first);
}

static void
ring_copy_in(struct gp_ring *ring, uint32_t at, const uint8_t *from, size_t size)
{
	size_t start = at & (ring->size - 1);
	size_t first = ring->size - start < size ? ring->size - start : size;

	memcpy(ring->bytes + start, from, first);
	memcpy(ring->bytes, from + first, size - first);
}

ssize_t
gp_ring_read(struct gp_ring *ring, const struct iovec *iov, int count)
{
	ssize_t used = gp_ring_get_used(ring);
	size_t left = used > 0 ? (size_t)used : 0;
	uint32_t at = ring->at;

	if (used <= 0)
		return used;
	for (int i = 0; i < count && left; i++) {
		size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;

		ring_copy_out(ring, at, iov[i].iov_base, part);
		at += (uint32_t)part;
		left -= part;
	}
	left = (size_t)used - (uint32_t)(at - ring->at);
	ring->at = at;
	/* Does not wake a writer for each free byte, since a waiting writer has much to write. A
	 * sleeping writer has seen a full ring; if it has filled the ring meanwhile, it is woken
	 * when the ring is down to half. */
	if ((size_t)used < ring->size / 4) {
		atomic_store_explicit(&ring->header->head, at, memory_order_release);
	} else {
		atomic_store(&ring->header->head, at);
		if (left <= ring->size / 2 && atomic_load(&ring->header->writer_waits))
			ring_wake_writer(ring);
	}
	return used - (ssize_t)left;
}

void
gp_ring_arm(struct gp_ring *ring)
{
	atomic_store(&ring->header->reader_waits, 1);
}

void
gp_ring_disarm(struct gp_ring *ring)
{
	atomic_store(&ring->header->reader_waits, 0);
}

/* Returns the bytes of room, or -EPROTO. */
static ssize_t
ring_get_room(struct gp_ring *ring)
{
	uint32_t head = atomic_load(&ring->header->head), used = ring->at - head;

	if (used > ring->size)
		return -EPROTO;
	ring->head = head;
	return (ssize_t)(ring->size - used);
}

/* Prefetches the cache lines of the next bytes, which the reader last used one ring ago. */
static void
ring_prefetch(const struct gp_ring *ring)
{
	for (uint32_t i = 0; i < PREFETCH_LINES; i++)
		__builtin_prefetch(ring->bytes + ((ring->at + i * GP_RING_LINE) & (ring->size - 1)),
				   1);
}

/* The room known from the last check is usually sufficient. */
static ssize_t
ring_get_room_for(struct gp_ring *ring, const struct iovec *iov, int count)
{
	size_t known = ring->size - (uint32_t)(ring->at - ring->head), wanted = 0;

	for (int i = 0; i < count; i++)
		wanted += iov[i].iov_len;
	return wanted <= known ? (ssize_t)known : ring_get_room(ring);
}

ssize_t
gp_ring_write(struct gp_ring *ring, const struct iovec *iov, int count)
{
	ssize_t free = ring_get_room_for(ring, iov, count);
	size_t left = free > (ssize_t)WRITE_MAX ? WRITE_MAX : (size_t)free;
	uint32_t at = ring->at;

	if (free <= 0)
		return free < 0 || !atomic_load(&ring->header->reader_closed) ? free : -EPIPE;
	for (int i = 0; i < count && left; i++) {
		size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;

		ring_copy_in(ring, at, iov[i].iov_base, part);
		at += (uint32_t)part;
		left -= part;
	}
	free = (ssize_t)(uint32_t)(at - ring->at);
	ring->at = at;
	ring_order_for_tsan(ring, false);
	atomic_store(&ring->header->tail, at);
	ring_prefetch(ring);
	/* The reader has just written the cache line of these words; checking them only now does
	 * not delay the bytes. */
	if (ring_get_room(ring) < 0)
		return -EPROTO;
	return atomic_load(&ring->header->reader_closed) ? -EPIPE : free;
}

bool
gp_ring_must_wake(struct gp_ring *ring)
{
	return atomic_load(&ring->header->reader_waits) &&
	       atomic_exchange(&ring->header->reader_waits, 0) != 0;
}

/* Uses a futex and not the connection's socket, on which the reading thread waits. */
void
gp_ring_wait_writable(struct gp_ring *ring)
{
	struct timespec limit = { .tv_nsec = ROOM_WAIT_NS };

	for (int i = 0; i < ROOM_POLLS; i++) {
		if (ring_get_room(ring) != 0 || atomic_load(&ring->header->reader_closed))
			return;
		gp_cpu_relax();
	}
	atomic_store(&ring->header->writer_waits, 1);
	if (ring_get_room(ring) == 0 && !atomic_load(&ring->header->reader_closed))
		(void)syscall(SYS_futex, &ring->header->writer_waits, FUTEX_WAIT, 1, &limit, NULL,
			      0);
	atomic_store(&ring->header->writer_waits, 0);
	/* Spurious wake-ups by the peer must not keep this thread busy. */
	if (ring_get_room(ring) == 0 && !atomic_load(&ring->header->reader_closed))
		gp_sleep_ns(ROOM_NAP_NS);
}
