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
	/* compresses chunks while that saves time; none before the first gp_pack_note_sent() */
	GP_PACK_AUTO,
	GP_PACK_ON, /* compresses also on a fast link; data that does not become smaller still
		       causes pauses */
	GP_PACK_OFF,
};

/* Minimum size of a chunk that is compressed, or whose transfer is measured. */
#define GP_PACK_MIN ((size_t)4096)
/* Bytes that gp_unpack_in_place() needs after the decompressed bytes, which are at most
 * GP_CHUNK_MAX (frame.h). */
#define GP_PACK_SLACK ((size_t)8 << 10)

/* State of a sender. The caller initializes it to zeros and sets the mode; the functions below set
 * the other members. */
struct gp_pack {
	enum gp_pack_mode mode;
	/* moving averages of the time to send and to compress 1 MiB; 0: unknown */
	uint64_t link_ns, pack_ns;
	unsigned int share; /* moving average of the compressed size of 1024 bytes; 0: unknown */
	/* number of chunks still to be sent uncompressed after compression did not save time, and
	 * that number after the next such attempt; 0: the default */
	unsigned int pause, next_pause;
	/* a chunk was compressed during a pause because of its samples, and did not save time */
	bool misled;
};

/* Called once for each chunk: returns whether the caller should call gp_pack_try() for the chunk
 * with these bytes. During a pause, samples of the bytes decide. */
bool gp_pack_should_try(struct gp_pack *pack, const void *bytes, size_t size);
/* Compresses the bytes into `to`, which has space for `size` bytes. size: from GP_PACK_MIN to
 * GP_CHUNK_MAX. Returns the compressed size; 0: compression saves less than an eighth, and the
 * caller sends the bytes uncompressed. */
size_t gp_pack_try(struct gp_pack *pack, const void *from, size_t size, void *to);
/* Records the time that sending a chunk took. Called after every chunk, also after an uncompressed
 * one. bytes: as sent, that is, after compression. */
void gp_pack_note_sent(struct gp_pack *pack, size_t bytes, uint64_t took_ns);

/* Decompresses `packed` bytes, which come from the network, to exactly `size` bytes. Both sizes are
 * at most GP_CHUNK_MAX: gp_chunk_decode() has checked that. Returns 0; or -1 if the data is
 * malformed, and the `size` bytes are then undefined. Writes nothing beyond them. */
int gp_unpack(const void *from, size_t packed, void *to, size_t size);
/* For decompression in place: returns the position at which the caller stores the compressed bytes,
 * so that they end at the end of memory of size + GP_PACK_SLACK bytes. packed and size: from the
 * network; gp_chunk_decode() has checked that packed is less than size and size at most
 * GP_CHUNK_MAX. */
void *gp_unpack_get_source(void *memory, size_t packed, size_t size);
/* Decompresses the bytes at gp_unpack_get_source() to the beginning of `memory`, and overwrites the
 * compressed bytes. Returns as gp_unpack(). */
int gp_unpack_in_place(void *memory, size_t packed, size_t size);

#endif /* GP_PACK_H */
