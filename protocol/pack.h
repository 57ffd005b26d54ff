/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptive compression (LZ4) of chunks on data lanes (protocol/wire.md, 7): the sender measures the
 * link and compresses chunks only while that saves time, that is, on a slow link and with
 * compressible data.
 *
 * Ownership: all memory is the caller's; nothing is allocated.
 * Threads: a struct gp_pack belongs to one sending thread. The gp_unpack functions may be called by
 * any thread.
 * Units: bytes and nanoseconds.
 */
#ifndef GP_PACK_H
#define GP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gp_pack_mode {
	/* compresses chunks while that saves time */
	GP_PACK_AUTO,
	GP_PACK_ON, /* compresses all chunks that become smaller */
	GP_PACK_OFF,
};

/* Minimum size of a chunk that is compressed. */
#define GP_PACK_MIN ((size_t)4096)
/* Bytes that gp_unpack_in_place() needs after the decompressed bytes, which are at most one
 * chunk. */
#define GP_PACK_SLACK ((size_t)8 << 10)

/* State of a sender, initialized to zeros except for the mode. */
struct gp_pack {
	enum gp_pack_mode mode;
	/* recent averages of the time to send and to compress 1 MiB; 0: unknown */
	uint64_t link_ns, pack_ns;
	unsigned int share; /* recent average compressed size of 1024 bytes; 0: unknown */
	/* pause: chunks still to be sent uncompressed after compression did not save time;
	 * next_pause: length of the next pause */
	unsigned int pause, next_pause;
	/* a chunk was compressed during a pause because of its samples, and did not save time */
	bool misled;
};

/* Returns whether to try compressing the next chunk, which has these bytes. During a pause, samples
 * of the bytes decide. */
bool gp_pack_should_try(struct gp_pack *pack, const void *bytes, size_t size);
/* Compresses the bytes into `room`, which has a capacity of `size` bytes. Returns the compressed
 * size; 0: compression saves too little, send the bytes uncompressed. */
size_t gp_pack_try(struct gp_pack *pack, const void *from, size_t size, void *room);
/* Records that sending a number of bytes, compressed or not, took this time. */
void gp_pack_note_sent(struct gp_pack *pack, size_t bytes, uint64_t took_ns);

/* Decompresses `packed` bytes to exactly `size` bytes. Returns 0, or -1 if the data is malformed;
 * never writes beyond the `size` bytes, which are undefined after an error. */
int gp_unpack(const void *from, size_t packed, void *to, size_t size);
/* For decompression in place: returns the position at which the compressed bytes must be stored,
 * near the end of memory of size + GP_PACK_SLACK bytes. */
void *gp_unpack_get_source(void *memory, size_t packed, size_t size);
/* Decompresses the bytes at gp_unpack_get_source() to the beginning of `memory`. Returns as
 * gp_unpack(). */
int gp_unpack_in_place(void *memory, size_t packed, size_t size);

#endif /* GP_PACK_H */
