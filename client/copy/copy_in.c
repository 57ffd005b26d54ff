/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/copy_in.h"

#include "client/array/array.h"
#include "client/base/container.h"
#include "client/context/fence.h"
#include "client/host/host_block.h"
#include "client/host/late_copy.h"
#include "client/host/listed_copy.h"
#include "client/host/pending_copy.h"
#include "client/memory/host_memory.h"
#include "client/session/lane.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "gpc_calls.h"
#include "protocol/control.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

/* Limits the size of a record, so that calls of other threads can be sent between the records of a
 * long copy. */
#define RECORD_MAX ((uint64_t)8 << 20)
/* Rows of at least this length are sent from their place; shorter ones are cheaper to gather than
 * to list. */
#define ROW_MIN ((uint64_t)2048)
#define ROWS_MAX 256
#define PACKED_MAX ((uint64_t)1 << 20)

/* At most this many bytes are sent in the record itself, and several such records in one message,
 * so a copy costs the caller no system call. */
#define SHORT_MAX ((size_t)16 << 10)

/* Longer copies are not scanned for addresses. Pinned memory has a lower limit, because its copies
 * must be fast. */
#define SCANNED_PINNED_MAX ((uint64_t)64 << 10)
#define SCANNED_MAX ((uint64_t)1 << 20)

struct sending {
	struct gpc_context *context;
	uint32_t stream; /* its wire ID */
	const struct gpc_copy *copy;
	unsigned int flags;  /* GP_COPY_BARRIER is set only on the last record */
	uint64_t record_max; /* in bytes */
	uint8_t *packed;
	bool on_lanes;
	struct gpc_coherence
		*coherence; /* lists the records (listed_copy.h); NULL: they are not listed */
};

static void *
host_row(const struct gpc_copy *copy, uint64_t slice, uint64_t row)
{
	return (void *)(uintptr_t)gpc_side_row(&copy->src, slice, row);
}

/* The part of a copy that one record sends: whole rows, or a piece of one row. */
struct part {
	uint64_t slice, row, column;
	uint64_t width, rows;
	bool last;
};

static unsigned int
part_get_flags(const struct sending *sending, const struct part *part)
{
	return part->last ? sending->flags : sending->flags & ~GP_COPY_BARRIER;
}

/* Returns the maximum of the worker's staging memory that a record of this size uses. */
static uint64_t
record_get_room(const struct sending *sending, uint64_t bytes, bool is_row)
{
	uint64_t features = gpc_session_facts(sending->context->scope.session)->features;
	uint64_t largest = bytes / 4;

	if (sending->on_lanes) {
		largest = gp_chunk_get_step(bytes, features & GP_FEATURE_SPREAD);
		return (bytes + largest - 1) / largest * GP_LISTED_SLOT;
	}
	/* Small parts share a slot, whose end may remain empty. */
	if (bytes <= GP_LISTED_SMALL)
		return (bytes + 64) * 8 / 7;
	if (largest < GP_LISTED_SLOT / 4)
		largest = GP_LISTED_SLOT / 4;
	if (largest > GP_LISTED_SLOT)
		largest = GP_LISTED_SLOT;
	/* Whole rows fill at least half of a part. */
	return (is_row ? (bytes + largest - 1) / largest : 2 * bytes / largest + 2) *
	       GP_LISTED_SLOT;
}

/* Lists the record, if the copy is listed, and returns its flags, which then contain its number. */
static CUresult
part_list(const struct sending *sending, const struct part *part, unsigned int *flags)
{
	const struct gpc_copy *copy = sending->copy;
	const struct gpc_listed_rows rows = {
		.base = (const uint8_t *)host_row(copy, part->slice, part->row) + part->column,
		.pitch = copy->src.pitch,
		.width = part->width,
		.rows = part->rows,
		.on_lanes = sending->on_lanes,
	};
	uint32_t number;

	*flags = part_get_flags(sending, part);
	if (!sending->coherence)
		return CUDA_SUCCESS;
	number = gpc_listed_copy_add(
		sending->coherence, &rows,
		record_get_room(sending, part->width * part->rows, part->rows == 1));
	*flags |= GP_COPY_LISTED | number << GP_COPY_NUMBER_SHIFT;
	return number ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
part_post_to_array(const struct sending *sending, const struct part *part, unsigned int flags,
		   const struct iovec *bulk, int count)
{
	const struct gpc_side *dst = &sending->copy->dst;
	const struct gp_args_gpArrayCopyIn args = {
		.stream = sending->stream,
		.array = dst->array->owner->handle.id,
		.level = dst->array->level,
		.x = dst->x + part->column,
		.y = dst->y + part->row,
		.z = dst->z + part->slice,
		.width = part->width,
		.height = part->rows,
		.depth = 1,
		.flags = flags,
	};

	return gpc_post_gpArrayCopyIn(sending->context, &args, bulk, count);
}

static bool
copy_is_scanned(const struct gpc_copy *copy)
{
	uint64_t size = copy->width * copy->height * copy->depth;

	return !copy->dst.array && size <= SCANNED_MAX &&
	       (size <= SCANNED_PINNED_MAX || atomic_load(&gpc_host_memory_copy_only) == 0 ||
		!gpc_host_memory_is_pinned(host_row(copy, 0, 0), copy->width));
}

/* The bytes of a short copy may be addresses that kernels will use. */
static CUresult
copy_scan_addresses(const struct sending *sending)
{
	const struct gpc_copy *copy = sending->copy;
	CUresult result = CUDA_SUCCESS;

	if (!copy_is_scanned(copy))
		return CUDA_SUCCESS;
	for (uint64_t slice = 0; slice < copy->depth && result == CUDA_SUCCESS; slice++) {
		for (uint64_t row = 0; row < copy->height && result == CUDA_SUCCESS; row++)
			result = gpc_host_memory_scan(sending->context, host_row(copy, slice, row),
						      copy->width);
	}
	return result;
}

static CUresult
part_post_short(const struct sending *sending, const struct gp_args_gpCopyIn *copy,
		const struct iovec *bytes)
{
	const struct gp_args_gpCopyInShort args = { .stream = copy->stream,
						    .dst = copy->dst,
						    .pitch = copy->pitch,
						    .width = copy->width,
						    .height = copy->height,
						    .flags = copy->flags,
						    .data = { bytes->iov_base, bytes->iov_len } };

	return gpc_post_gpCopyInShort(sending->context, &args);
}

static CUresult
part_post(const struct sending *sending, const struct part *part, const struct iovec *bulk,
	  int count)
{
	const struct gpc_side *dst = &sending->copy->dst;
	struct gp_args_gpCopyIn args = {
		.stream = sending->stream,
		.dst = gpc_side_row(dst, part->slice, part->row) + part->column,
		.pitch = part->rows == 1 ? part->width : dst->pitch,
		.width = part->width,
		.height = part->rows,
	};
	CUresult result = part_list(sending, part, &args.flags);

	if (result != CUDA_SUCCESS)
		return result;
	if (dst->array)
		return part_post_to_array(sending, part, args.flags, bulk, count);
	if (count == 1 && bulk->iov_len <= SHORT_MAX)
		return part_post_short(sending, &args, bulk);
	return gpc_post_gpCopyIn(sending->context, &args, bulk, count);
}

/* Sends a row that is too long for one record, from byte `from` on. */
static CUresult
send_row(const struct sending *sending, uint64_t slice, uint64_t row, uint64_t from, bool last)
{
	const struct gpc_copy *copy = sending->copy;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = from; at < copy->width && result == CUDA_SUCCESS;) {
		uint64_t left = copy->width - at;
		uint64_t size = left < sending->record_max ? left : sending->record_max;
		struct iovec bulk = { .iov_base = (uint8_t *)host_row(copy, slice, row) + at,
				      .iov_len = size };
		const struct part part = { slice, row, at, size, 1, last && size == left };

		result = part_post(sending, &part, &bulk, 1);
		at += size;
	}
	return result;
}

static int
rows_gather(const struct sending *sending, uint64_t slice, uint64_t row, uint64_t rows,
	    struct iovec *bulk)
{
	const struct gpc_copy *copy = sending->copy;

	if (!sending->packed) {
		for (uint64_t i = 0; i < rows; i++)
			bulk[i] = (struct iovec){ .iov_base = host_row(copy, slice, row + i),
						  .iov_len = copy->width };
		return (int)rows;
	}
	for (uint64_t i = 0; i < rows; i++)
		memcpy(sending->packed + i * copy->width, host_row(copy, slice, row + i),
		       copy->width);
	bulk[0] = (struct iovec){ .iov_base = sending->packed, .iov_len = rows * copy->width };
	return 1;
}

static uint64_t
record_get_rows_max(const struct sending *sending)
{
	uint64_t width = sending->copy->width, rows;

	rows = sending->record_max / width;
	if (sending->packed)
		return rows < PACKED_MAX / width ? rows : PACKED_MAX / width;
	return rows < ROWS_MAX ? rows : ROWS_MAX;
}

static CUresult
send_slice(const struct sending *sending, uint64_t slice)
{
	const struct gpc_copy *copy = sending->copy;
	uint64_t rows_max = record_get_rows_max(sending);
	bool last = slice + 1 == copy->depth;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t row = 0; row < copy->height && result == CUDA_SUCCESS;) {
		uint64_t left = copy->height - row;
		uint64_t rows = left < rows_max ? left : rows_max;
		struct iovec bulk[ROWS_MAX];
		const struct part part = { slice, row, 0, copy->width, rows, last && rows == left };

		if (rows_max == 0) {
			result = send_row(sending, slice, row++, 0, last && left == 1);
			continue;
		}
		result = part_post(sending, &part, bulk,
				   rows_gather(sending, slice, row, rows, bulk));
		row += rows;
	}
	return result;
}

/*
 * Sends one long row over the data lanes. may_return: pinned memory of an asynchronous copy may be
 * read after the call. A copy after a host function must be deferred by the daemon, which accepts
 * its data on lane 0 only.
 */
static CUresult
send_over_lanes(const struct sending *sending, bool may_return)
{
	struct gpc_session *session = sending->context->scope.session;
	const struct gpc_copy *copy = sending->copy;
	CUresult result = CUDA_SUCCESS, sent = CUDA_SUCCESS;
	unsigned int wait = 0;
	uint64_t at = 0;

	while (at < copy->width && result == CUDA_SUCCESS) {
		uint64_t left = copy->width - at;
		uint64_t size = left < RECORD_MAX ? left : RECORD_MAX;

		const struct part part = {
			.column = at, .width = size, .rows = 1, .last = size == left
		};
		unsigned int flags;

		result = part_list(sending, &part, &flags);
		if (result == CUDA_SUCCESS)
			result = gpc_lanes_send(&sending->context->scope, sending->stream,
						copy->dst.base + at,
						(const uint8_t *)host_row(copy, 0, 0) + at, size,
						flags, may_return ? NULL : &wait);
		if (result == CUDA_SUCCESS)
			at += size;
	}
	if (result == CUDA_ERROR_NOT_READY)
		result = send_row(sending, 0, 0, at, true);
	if (!may_return)
		sent = gpc_lanes_wait_sent(session, &wait);
	return result == CUDA_SUCCESS ? sent : result;
}

/* Decides how the copy is divided into records. */
static CUresult
sending_init(struct sending *sending, bool may_return)
{
	struct gpc_session *session = sending->context->scope.session;
	const struct gpc_copy *copy = sending->copy;
	uint64_t allowed = gpc_session_facts(session)->max_bulk;
	CUresult result = copy_scan_addresses(sending);

	if (result != CUDA_SUCCESS)
		return result;
	sending->record_max = allowed < RECORD_MAX ? allowed : RECORD_MAX;
	if (copy->width < ROW_MIN && copy->height > 1) {
		sending->packed =
			malloc(copy->height < PACKED_MAX / copy->width ? copy->width * copy->height
								       : PACKED_MAX);
		if (!sending->packed)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sending->on_lanes = !copy->dst.array && copy->height == 1 && copy->depth == 1 &&
			    gpc_lanes_open_for_copy(session, copy->width, may_return);
	return CUDA_SUCCESS;
}

/* may_return: the source may be read after this returns. */
static CUresult
sending_send(const struct sending *sending, bool may_return)
{
	const struct gpc_copy *copy = sending->copy;
	CUresult result = CUDA_SUCCESS;

	if (sending->on_lanes)
		return send_over_lanes(sending, may_return);
	for (uint64_t slice = 0; slice < copy->depth && result == CUDA_SUCCESS; slice++)
		result = send_slice(sending, slice);
	return result;
}

static void
sending_fini(struct sending *sending)
{
	if (sending->copy->dst.device_mapped)
		gpc_session_note_visible(sending->context->scope.session);
	free(sending->packed);
}

/* Returns whether the copy is one row that is sent in the record itself. */
static bool
copy_is_short(const struct gpc_copy *copy)
{
	return copy->width <= SHORT_MAX && copy->height == 1 && copy->depth == 1 &&
	       !copy->dst.array;
}

static CUresult
send_short(struct sending *sending)
{
	const struct gpc_copy *copy = sending->copy;
	const struct gp_args_gpCopyIn args = {
		.stream = sending->stream,
		.dst = copy->dst.base,
		.pitch = copy->width,
		.width = copy->width,
		.height = 1,
		.flags = sending->flags,
	};
	const struct iovec bytes = { host_row(copy, 0, 0), copy->width };
	CUresult result = copy_scan_addresses(sending);

	if (result == CUDA_SUCCESS)
		result = part_post_short(sending, &args, &bytes);
	(void)gpc_session_work_mark(sending->context->scope.session);
	sending_fini(sending);
	return result;
}

static CUresult
copy_send(struct sending *sending, bool may_return)
{
	CUresult result = sending_init(sending, may_return);

	if (result == CUDA_SUCCESS)
		result = sending_send(sending, may_return);
	sending_fini(sending);
	return result;
}

/* Starts listing the records of a copy that is sent early. Returns false if it must be a late copy
 * instead. Memory that is not pinned may be freed without the library's knowledge, so it must not
 * be read again later. */
static bool
copy_list_records(struct sending *sending)
{
	struct gpc_session *session = sending->context->scope.session;
	const struct gpc_copy *copy = sending->copy;
	uint64_t rows_max = record_get_rows_max(sending);
	uint64_t rows = rows_max < copy->height ? rows_max : copy->height;
	uint64_t records = (copy->width + sending->record_max - 1) / sending->record_max;
	uint64_t bytes = records > 1 ? sending->record_max : copy->width;

	if (!gpc_host_memory_is_pinned(host_row(copy, 0, 0), gpc_copy_span(copy, &copy->src)) ||
	    (copy->height > 1 && copy->dst.pitch > INT32_MAX))
		return false;
	if (rows > 0) {
		records = (copy->height + rows - 1) / rows;
		bytes = rows * copy->width;
	} else {
		records *= copy->height;
	}
	records *= copy->depth;
	sending->coherence = gpc_listed_copy_begin(
		session, records, records * record_get_room(sending, bytes, copy->height == 1));
	return sending->coherence != NULL;
}

/* A late copy (client/host/late_copy.h). */
struct late {
	struct gpc_late_copy late;
	struct gpc_context *context;
	uint32_t stream;
	struct gpc_copy copy;
	uint8_t *bytes; /* the source at the time of the call; NULL: read from the source itself */
};

static CUresult
late_send(struct gpc_late_copy *copy)
{
	const struct late *late = GPC_CONTAINER(copy, struct late, late);
	struct sending sending = {
		.context = late->context,
		.stream = late->stream,
		.copy = &late->copy,
		.flags = GP_COPY_LATE,
	};

	return copy_send(&sending, late->bytes == NULL);
}

static void
late_destroy(struct gpc_late_copy *copy)
{
	struct late *late = GPC_CONTAINER(copy, struct late, late);

	free(late->bytes);
	free(late);
}

/* Pageable memory is read during the call. */
static bool
late_read_source(struct late *late)
{
	struct gpc_copy *copy = &late->copy;
	uint64_t at = 0;

	late->bytes = malloc(copy->width * copy->height * copy->depth);
	if (!late->bytes)
		return false;
	for (uint64_t slice = 0; slice < copy->depth; slice++) {
		for (uint64_t row = 0; row < copy->height; row++, at += copy->width)
			memcpy(late->bytes + at, host_row(copy, slice, row), copy->width);
	}
	copy->src.base = (uintptr_t)late->bytes;
	copy->src.pitch = copy->width;
	copy->src.slice = copy->width * copy->height;
	return true;
}

static CUresult
late_post(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	struct late *late = calloc(1, sizeof(*late));

	if (!late)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*late = (struct late){
		.late = { .session = stream->context->scope.session,
			  .send = late_send,
			  .destroy = late_destroy },
		.context = stream->context,
		.stream = stream->handle.id,
		.copy = *copy,
	};
	if (copy->src.pinned) {
		late->late.start = copy->src.base;
		late->late.end = copy->src.base + gpc_copy_span(copy, &copy->src);
	} else if (!late_read_source(late)) {
		free(late);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return gpc_late_copy_post(&stream->context->scope, stream->handle.id, &late->late);
}

/* No code of the library runs between the program's store and the kernel's load. */
bool
gpc_copy_kernels_may_poll(struct gpc_session *session)
{
	return gpc_session_shares_memory(session) && atomic_load(&gpc_host_memory_shared) > 0 &&
	       !gpc_fence_is_redundant(session);
}

/* Returns whether the data of an asynchronous copy must be sent when the stream reaches the copy:
 * because the program may fill the source until then, or because the data would occupy the worker's
 * memory until then. */
static bool
copy_is_late(struct gpc_session *session, const struct gpc_copy *copy)
{
	bool blocked = gpc_session_is_host_gated(session);

	if (!gpc_late_copy_is_known(session))
		return false;
	if (!copy->src.pinned)
		return blocked && copy->width * copy->height * copy->depth > SHORT_MAX;
	return blocked || gpc_copy_kernels_may_poll(session) ||
	       gpc_pending_copy_writes((const void *)(uintptr_t)copy->src.base,
				       gpc_copy_span(copy, &copy->src));
}

CUresult
gpc_copy_in(struct gpc_stream *stream, const struct gpc_copy *copy, bool barrier)
{
	struct gpc_session *session = stream->context->scope.session;
	struct sending sending = {
		.context = stream->context,
		.stream = stream->handle.id,
		.copy = copy,
		.flags = barrier ? GP_COPY_BARRIER : 0,
	};
	bool may_return = copy->src.pinned && !barrier, listed;
	CUresult result = CUDA_SUCCESS;

	if (!barrier && copy_is_late(session, copy))
		return late_post(stream, copy);
	if (barrier)
		gpc_sync_implicitly_stream(stream);
	/* A host function before the copy may fill its source; the caller of a synchronous copy may
	 * rely on its having run. */
	if (barrier || copy->src.pinned)
		result = gpc_stream_fence_functions(stream);
	if (result == CUDA_SUCCESS)
		result = gpc_pending_copy_settle((const void *)(uintptr_t)copy->src.base,
						 gpc_copy_span(copy, &copy->src));
	listed = may_return && gpc_listed_copy_is_needed(session);
	if (result == CUDA_SUCCESS && !listed && copy_is_short(copy))
		return send_short(&sending);
	if (result == CUDA_SUCCESS)
		result = sending_init(&sending, may_return);
	if (result == CUDA_SUCCESS && listed && !copy_list_records(&sending)) {
		sending_fini(&sending);
		return late_post(stream, copy);
	}
	if (result == CUDA_SUCCESS)
		result = sending_send(&sending, may_return);
	/* Marked after posting: a fence sent in between does not cover the copy. */
	if (sending.coherence)
		gpc_listed_copy_end(sending.coherence);
	else
		(void)gpc_session_work_mark(session);
	sending_fini(&sending);
	return result;
}
