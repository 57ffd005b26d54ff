/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a data lane compresses what it sends (protocol/wire.md, 7), decided while it sends: where
 * the link is slow, the bytes become fewer and compressing them costs less than it saves.
 * A struct gp_pack is of one thread, which sends on one lane.
 */
#ifndef GP_PACK_H
#define GP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gp_pack_mode {
	GP_PACK_AUTO,
	GP_PACK_ON, /* whatever becomes shorter */
	GP_PACK_OFF,
};

/* Smaller ones are sent as they are. */
#define GP_PACK_MIN ((size_t)4096)
/* Room that gp_unpack_in_place() needs behind the bytes that come out, which are a chunk at most.
 */
#define GP_PACK_SLACK ((size_t)8 << 10)

/* Zero, and the mode. */
struct gp_pack {
	enum gp_pack_mode mode;
	uint64_t link_ns, pack_ns;      /* for 1 MiB, of late; 0: not known */
	unsigned int share;             /* what is left of 1024 bytes, of late; 0: not known */
	unsigned int pause, next_pause; /* chunks that are not tried, because others did not pay */
	bool misled;                    /* one was tried for its samples and did not pay either */
};

/* Whether to try it with the next chunk, these bytes.  In a pause a few samples of them decide. */
bool gp_pack_should_try(struct gp_pack *pack, const void *bytes, size_t size);
/* The bytes compressed, in at most size bytes of room; 0: they are to be sent as they are. */
size_t gp_pack_try(struct gp_pack *pack, const void *from, size_t size, void *room);
/* So many bytes went to the connection, compressed or not. */
void gp_pack_note_sent(struct gp_pack *pack, size_t bytes, uint64_t took_ns);

/* 0, or -1: these bytes are not exactly so many, compressed.  Nothing beyond them is written. */
int gp_unpack(const void *from, size_t packed, void *to, size_t size);
/* Where compressed bytes are to lie for the second function, which leaves the others at `memory`:
 * behind them, in room for size + GP_PACK_SLACK. */
void *gp_unpack_get_source(void *memory, size_t packed, size_t size);
int gp_unpack_in_place(void *memory, size_t packed, size_t size);

#endif /* GP_PACK_H */
