/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptive compression of data lanes (protocol/wire.md, 7): the sender measures the link and
 * compresses chunks only while that saves time, that is, on a slow link and with compressible data.
 *
 * Threads: a struct gp_pack belongs to one sending thread.
 */
#ifndef GP_PACK_H
#define GP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gp_pack_mode {
	GP_PACK_AUTO,
	GP_PACK_ON, /* compresses all chunks that become smaller */
	GP_PACK_OFF,
};

/* Smaller chunks are sent uncompressed. */
#define GP_PACK_MIN ((size_t)4096)
/* Room that gp_unpack_in_place() needs after the decompressed bytes, which are at most one
 * chunk. */
#define GP_PACK_SLACK ((size_t)8 << 10)

/* State of a sender, initialized to zeros except for the mode. */
struct gp_pack {
	enum gp_pack_mode mode;
	uint64_t link_ns, pack_ns;      /* recent averages for 1 MiB; 0: unknown */
	unsigned int share;             /* recent compressed size of 1024 bytes; 0: unknown */
	unsigned int pause, next_pause; /* chunks to skip after compression did not pay off */
	bool misled; /* a chunk was tried because of its samples, and did not pay off */
};

/* Whether to try compressing the next chunk, which has these bytes. During a pause, samples of the
 * bytes decide. */
bool gp_pack_should_try(struct gp_pack *pack, const void *bytes, size_t size);
/* Compresses the bytes into `room`, which has `size` bytes. Returns the compressed size; 0: send
 * them uncompressed. */
size_t gp_pack_try(struct gp_pack *pack, const void *from, size_t size, void *room);
/* Records that a number of bytes, compressed or not, was sent in this time. */
void gp_pack_note_sent(struct gp_pack *pack, size_t bytes, uint64_t took_ns);

/* Decompresses exactly `size` bytes. Returns 0, or -1 if the data is malformed; never writes beyond
 * the `size` bytes. */
int gp_unpack(const void *from, size_t packed, void *to, size_t size);
/* For decompression in place: returns the position for the compressed bytes, near the end of memory
 * of size + GP_PACK_SLACK bytes. gp_unpack_in_place() then writes the decompressed bytes to the
 * beginning of `memory`. */
void *gp_unpack_get_source(void *memory, size_t packed, size_t size);
int gp_unpack_in_place(void *memory, size_t packed, size_t size);

#endif /* GP_PACK_H */
