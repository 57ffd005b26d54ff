/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the call stream: what travels inside the messages of a lane (protocol/wire.md).
 *
 * A transport message holds one or more records back to back; each begins with this header and is
 * a multiple of 8 bytes long.  Only the last record of a message may carry GP_FRAME_BULK: the
 * message's bulk tail belongs to it.
 */
#ifndef GP_FRAME_H
#define GP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_FRAME_BULK 1u  /* the transport message's bulk tail belongs to this record */
#define GP_FRAME_REPLY 2u /* daemon to client: the reply to request */

/* A reply whose fields are longer than the first has them in its bulk tail, which has a limit. */
#define GP_REPLY_FIELDS_MAX ((size_t)128 << 10)
#define GP_REPLY_BULK_MAX ((size_t)256 << 20)

struct gp_header {
	uint32_t size;    /* of the record, this header included; a multiple of 8 */
	uint16_t call;    /* enum gp_call, or enum gp_note from the daemon */
	uint16_t flags;   /* GP_FRAME_* */
	uint32_t request; /* chosen by the client; 0: no reply is wanted */
	uint32_t
		context; /* client: the gp_context the call acts in, 0 none; daemon: the CUresult */
};

_Static_assert(sizeof(struct gp_header) == 16, "records begin with 16 bytes");

/* What the daemon sends besides replies. */
enum gp_note {
	GP_NOTE_DATA =
		0xff01, /* request's rows: u64 offset, u64 size; the bytes are the bulk tail */
	GP_NOTE_ERROR =
		0xff02, /* a posted call failed: u32 CUresult, u32 sticky, u32 call, u32 0 */
	GP_NOTE_PRINT =
		0xff03, /* output of the session's kernels: bytes, for the client's stdout */
	GP_NOTE_COMPLAIN = 0xff04, /* what the driver says of a failed kernel: bytes, for stderr */
	GP_NOTE_FUNCTION = 0xff05, /* a host function's turn has come: u32 function, u32 CUresult */
	GP_NOTE_SHARE = 0xff06,    /* other multiprocessors: u32 device, u32 0 */
	GP_NOTE_WAITS = 0xff07,    /* so many gpStreamWait are over: u32 count, u32 0 */
	GP_NOTE_PUBLISH = 0xff08,  /* gpHostPublish of this number is wanted: u32 number, u32 0 */
};

/* Bytes of a kernel's packed parameters: CUDA's own limit since 12.1. */
#define GP_LAUNCH_PARAMS_MAX 32764

/* What a client may send from its first host function that is not done on, in bytes: each record
 * counts as its size, its bulk and GP_DEFERRED_RECORD_COST. */
#define GP_DEFERRED_QUEUE_MAX ((uint64_t)64 << 20)
/* The daemon may say less, but not less than this. */
#define GP_DEFERRED_QUEUE_MIN ((uint64_t)4 << 20)
#define GP_DEFERRED_RECORD_COST ((uint64_t)256)
#define GP_DEFERRED_QUEUE_COST(record_size, bulk_size)                                             \
	(GP_DEFERRED_RECORD_COST + (record_size) + (bulk_size))

/* Flags of gpCopyIn, gpCopyInShort, gpCopyInLanes and gpArrayCopyIn. */
#define GP_COPY_BARRIER 1u /* all later work of the session waits for this copy */
/* A late copy: it takes the place of a host function whose turn has come, and is carried out at
 * once.  Only with GP_FEATURE_LATE. */
#define GP_COPY_LATE 2u
/* A listed copy: gpCopyReplace may name this record by the number in the other bits, which neither
 * of the two flags above is combined with.  Only for daemons that know gpCopyReplace. */
#define GP_COPY_LISTED 4u
#define GP_COPY_NUMBER_SHIFT 8
#define GP_COPY_NUMBERS (1u << 24)

static inline bool
gp_copy_flags_are_valid(uint32_t flags)
{
	return (flags & GP_COPY_LISTED) ? (flags & 0xff) == GP_COPY_LISTED
					: !(flags & ~(GP_COPY_BARRIER | GP_COPY_LATE));
}

/* Staging memory that a session's listed copies may occupy in the worker, besides what its other
 * copies may: parts above GP_LISTED_SMALL take GP_LISTED_SLOT bytes each. */
#define GP_LISTED_ROOM ((uint64_t)64 << 20)
#define GP_LISTED_SLOT ((uint64_t)1 << 20)
#define GP_LISTED_SMALL ((uint64_t)128 << 10)
/* Bytes of one gpCopyReplace. */
#define GP_REPLACE_MAX ((size_t)64 << 10)

/* Decodes a header; 0, or GP_FRAME_MALFORMED when size is short, unaligned or beyond available. */
#define GP_FRAME_MALFORMED 1
int gp_header_decode(struct gp_header *header, const void *data, size_t available);
void gp_header_encode(const struct gp_header *header, void *memory);

/*
 * A message of a data lane: bytes of a large copy (wire.md, 7).  The data are this header, the bulk
 * is the bytes.
 */
#define GP_CHUNK_SIZE 16
#define GP_CHUNK_MAX ((size_t)1 << 20)
/* Lanes of a session, lane 0 included. */
#define GP_LANES_MAX 16

struct gp_chunk {
	uint32_t copy;
	uint64_t offset;
	uint64_t size;   /* of the copy's bytes, which are the bulk ... */
	uint32_t packed; /* ... or, if this is not 0, so many compressed ones are */
};

/* 0, or GP_FRAME_MALFORMED: it is none, or goes on beyond the largest offset. */
int gp_chunk_decode(struct gp_chunk *chunk, const void *data, size_t size, size_t bulk_size);
void gp_chunk_encode(const struct gp_chunk *chunk, uint8_t memory[GP_CHUNK_SIZE]);

/* How far apart the chunks of a copy to the device begin; spread: both ends have
 * GP_FEATURE_SPREAD. */
uint64_t gp_chunk_get_step(uint64_t copy_size, bool spread);
/* Bytes of the chunk that begins at this offset of a copy to the device; 0: none begins there. */
uint64_t gp_chunk_get_expected_size(uint64_t copy_size, uint64_t step, uint64_t offset);

#endif /* GP_FRAME_H */
