/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of records and chunks (protocol/wire.md, 6 and 7), and the limits that both ends enforce.
 * A lane is a data connection of a session: lane 0 carries calls and replies as records, the others
 * carry parts of large copies as chunks.
 *
 * A transport message on lane 0 contains one or more records. Each begins with struct gp_header and
 * has a size that is a multiple of 8. Only the last record of a message may have GP_FRAME_BULK: the
 * message's bulk data belongs to it.
 *
 * Ownership: plain values.
 * Threads: any; pure functions.
 * Units: bytes.
 */
#ifndef GP_FRAME_H
#define GP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_FRAME_BULK 1u  /* the transport message's bulk data belongs to this record */
#define GP_FRAME_REPLY 2u /* worker to client: reply to the call numbered `request` */

/* Limits of a reply. Fields that exceed GP_REPLY_FIELDS_MAX are sent as bulk data, up to
 * GP_REPLY_BULK_MAX. */
#define GP_REPLY_FIELDS_MAX ((size_t)128 << 10)
#define GP_REPLY_BULK_MAX ((size_t)256 << 20)

/* Header of a record; little-endian on the wire. */
struct gp_header {
	uint32_t size;    /* bytes of the record including this header; a multiple of 8 */
	uint16_t call;    /* enum gp_call; from the worker also enum gp_note */
	uint16_t flags;   /* GP_FRAME_* */
	uint32_t request; /* number chosen by the client; 0: no reply */
	/* From the client: the ID of the call's context, 0: none. In a reply: the CUresult. */
	uint32_t context;
};

_Static_assert(sizeof(struct gp_header) == 16, "records begin with 16 bytes");

/* Messages from the worker that are not replies. They have these call numbers in their headers.
 * Their fields follow the colons. */
enum gp_note {
	/* Rows of the copy to the host that the header's member `request` identifies: u64 offset,
	 * u64 size; the bytes are the bulk data. */
	GP_NOTE_DATA = 0xff01,
	/* a call without reply failed: u32 CUresult, u32 sticky (not 0: the error ends the
	 * session), u32 call (enum gp_call), u32 0 */
	GP_NOTE_ERROR = 0xff02,
	GP_NOTE_PRINT = 0xff03, /* output of the session's kernels: bytes for the client's stdout */
	GP_NOTE_COMPLAIN = 0xff04, /* the driver's report on a failed kernel: bytes for stderr */
	/* the host function of a gpHostFunction is due: u32 function (its ID), u32 CUresult (an
	 * error: the worker refuses it) */
	GP_NOTE_FUNCTION = 0xff05,
	GP_NOTE_SHARE =
		0xff06, /* the session's number of multiprocessors has changed: u32 device, u32 0 */
	GP_NOTE_WAITS = 0xff07, /* number of the session's gpStreamWait calls that are complete: u32
				   count, u32 0 */
	GP_NOTE_PUBLISH = 0xff08, /* requests a gpHostPublish with this number from the client: u32
				     number, u32 0 */
};

/* Maximum bytes of a kernel's packed parameters: CUDA's own limit since 12.1. */
#define GP_LAUNCH_PARAMS_MAX 32764

/* Maximum bytes of records that a client may send after its earliest host function
 * (cuLaunchHostFunc) that has not completed, because the worker stores these records in its
 * deferred queue. Each record counts as its size plus its bulk data plus
 * GP_DEFERRED_RECORD_COST. */
#define GP_DEFERRED_QUEUE_MAX ((uint64_t)64 << 20)
/* Lowest limit that a daemon may announce, in its Welcome, instead of GP_DEFERRED_QUEUE_MAX. */
#define GP_DEFERRED_QUEUE_MIN ((uint64_t)4 << 20)
#define GP_DEFERRED_RECORD_COST ((uint64_t)256)
#define GP_DEFERRED_QUEUE_COST(record_size, bulk_size)                                             \
	(GP_DEFERRED_RECORD_COST + (record_size) + (bulk_size))

/* Flags of gpCopyIn, gpCopyInShort, gpCopyInLanes and gpArrayCopyIn; bits from GP_COPY_NUMBER_SHIFT
 * on are a number. */
#define GP_COPY_BARRIER 1u /* all later work of the session waits for this copy */
/* A late copy: the client reads the source when the stream has reached the copy. It posts a
 * gpHostFunction in place of the copy, and sends the copy with this flag when it receives
 * GP_NOTE_FUNCTION; the worker executes it at once, before deferred records. Only with
 * GP_FEATURE_LATE. */
#define GP_COPY_LATE 2u
/* A listed copy: gpCopyReplace may later replace its bytes, referring to this record by the number
 * in the bits from GP_COPY_NUMBER_SHIFT on. Cannot be combined with the two flags above. Only for
 * workers that support gpCopyReplace. */
#define GP_COPY_LISTED 4u
#define GP_COPY_NUMBER_SHIFT 8
/* Numbers of listed copies are below this. */
#define GP_COPY_NUMBERS (1u << 24)

/* Returns whether the flags of a copy, which come from the network, are a permitted combination. */
static inline bool
gp_copy_flags_are_valid(uint32_t flags)
{
	return (flags & GP_COPY_LISTED) ? (flags & 0xff) == GP_COPY_LISTED
					: !(flags & ~(GP_COPY_BARRIER | GP_COPY_LATE));
}

/* Maximum staging memory in the worker that a session's listed copies may occupy, in addition to
 * that of its other copies. Parts larger than GP_LISTED_SMALL occupy a slot of GP_LISTED_SLOT bytes
 * each; smaller parts share slots. */
#define GP_LISTED_ROOM ((uint64_t)64 << 20)
#define GP_LISTED_SLOT ((uint64_t)1 << 20)
#define GP_LISTED_SMALL ((uint64_t)128 << 10)
/* Maximum size of a gpCopyReplace. */
#define GP_REPLACE_MAX ((size_t)64 << 10)

/* Result of the decoding functions below: the bytes are malformed. */
#define GP_FRAME_MALFORMED 1
/* Decodes a record's header from `available` bytes, which come from the network. Returns 0; or
 * GP_FRAME_MALFORMED, with *header undefined, if the record's size is too small, not a multiple of
 * 8, or larger than available. The other members are not checked. */
int gp_header_decode(struct gp_header *header, const void *data, size_t available);
void gp_header_encode(const struct gp_header *header, void *memory);

/*
 * Size of the header of a chunk: a message on a data lane with a part of a large copy (wire.md, 7).
 * The message's data is this header, its bulk data is the chunk's bytes.
 */
#define GP_CHUNK_SIZE 16
/* Maximum size of a chunk's bytes before compression. */
#define GP_CHUNK_MAX ((size_t)1 << 20)
/* Maximum lanes of a session, including lane 0. */
#define GP_LANES_MAX 16

/* Decoded header of a chunk. */
struct gp_chunk {
	/* number of the copy: member `copy` of its gpCopyInLanes or gpCopyOutLanes */
	uint32_t copy;
	/* offset of the chunk in the copy */
	uint64_t offset;
	uint64_t size;   /* bytes of the copy that the chunk contains, from 1 to GP_CHUNK_MAX */
	uint32_t packed; /* compressed size, below `size`; 0: not compressed */
};

/* Decodes a chunk's header from the data of a message (size) with bulk data (bulk_size). Returns 0;
 * or GP_FRAME_MALFORMED, with *chunk undefined, if a size is not as described above, or the chunk's
 * end would exceed the largest offset. The caller checks copy and offset. */
int gp_chunk_decode(struct gp_chunk *chunk, const void *data, size_t size, size_t bulk_size);
void gp_chunk_encode(const struct gp_chunk *chunk, uint8_t memory[GP_CHUNK_SIZE]);

/* Returns the distance between the offsets of a copy's chunks on the way to the device, which is
 * also the size of all chunks but the last. copy_size: of the whole copy. spread: both ends have
 * GP_FEATURE_SPREAD. */
uint64_t gp_chunk_get_step(uint64_t copy_size, bool spread);
/* Returns the size of the chunk at this offset of a copy to the device; 0: no chunk begins there.
 * step: as gp_chunk_get_step() returns it. */
uint64_t gp_chunk_get_expected_size(uint64_t copy_size, uint64_t step, uint64_t offset);

#endif /* GP_FRAME_H */
