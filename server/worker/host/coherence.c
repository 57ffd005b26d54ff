/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronizes host memory between the client's copy and the copy that kernels access. */
#include "gpd_calls.h"
#include "protocol/host_consistent_copy.h"
#include "protocol/host_merge.h"
#include "protocol/host_run_bitmap.h"
#include "server/common/base/integers.h"
#include "server/worker/context/context.h"
#include "server/worker/host/host_arena.h"
#include "server/worker/host/host_space_internal.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The shadow is created at the first transfer; until then both ends treat the content as zeros. */
static bool
has_shadow(struct gpd_host_arena *arena)
{
	void *shadow;

	if (arena->shadow)
		return true;
	shadow = mmap(NULL, arena->size + gp_run_bitmap_get_size(arena->size),
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shadow == MAP_FAILED)
		return false;
	arena->shadow = shadow;
	return true;
}

static void
shadow_update(void *arg, const struct gp_change *change)
{
	const struct gpd_host_arena *arena =
		gpd_host_memory_arena(arg, change->address, change->size);

	gp_merge_copy(arena->shadow + (change->address - arena->address), change->bytes,
		      change->size, change->same);
	__builtin_prefetch(gpd_address_to_pointer(change->address), 1);
}

static void
change_store(void *unused, const struct gp_change *change)
{
	gp_merge_store(gpd_address_to_pointer(change->address), change->bytes, change->size,
		       change->same);
}

CUresult
gpd_gpHostMerge(struct gpd_session *session, const struct gp_args_gpHostMerge *args)
{
	struct gpd_host_memory *memory = session->host_memory;

	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->copies_lock);
	memory->consistent_copy.merges = true;
	pthread_mutex_unlock(&memory->copies_lock);
	return CUDA_SUCCESS;
}

/* The lock must be held. */
static CUresult
check_write(struct gpd_session *session, const void *bytes, size_t size)
{
	struct gp_change change;
	size_t at = 0;

	while (gp_changes_next(bytes, size, &at, &change) > 0) {
		struct gpd_host_arena *arena =
			gpd_host_memory_arena(session, change.address, change.size);

		if (!arena && gpd_host_memory_inside(session, change.address, change.size))
			gpd_session_violation(session, "it changes host memory that is not mapped");
		if (!arena)
			return CUDA_ERROR_INVALID_VALUE;
		if (!has_shadow(arena))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult
gpd_gpHostWrite(struct gpd_session *session, const struct gp_args_gpHostWrite *args)
{
	struct gpd_host_memory *memory = session->host_memory;
	const void *bytes = args->changes.data;
	size_t size = args->changes.size;
	CUresult result;

	if (!gp_changes_are_valid(bytes, size)) {
		gpd_session_violation(session, "it sent invalid changes of host memory");
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Without host memory the check fails. */
	if (!memory)
		return check_write(session, bytes, size);
	pthread_mutex_lock(&memory->copies_lock);
	memory->writes++;
	result = check_write(session, bytes, size);
	if (result == CUDA_SUCCESS) {
		gp_changes_for_each(bytes, size, shadow_update, session);
		/* All stores follow each other directly, so that words without a defined order
		 * change at about the same time. */
		gp_changes_for_each(bytes, size, change_store, NULL);
	}
	pthread_mutex_unlock(&memory->copies_lock);
	return result;
}

static uint64_t
mapped_bytes(const struct gpd_session *session)
{
	const struct gpd_host_memory *memory = session->host_memory;
	uint64_t size = 0;

	for (size_t i = 0; i < memory->count; i++)
		size += memory->arenas[i]->size;
	return size;
}

/* Fills in where the copies of a range are now; false: the range is not mapped. */
static bool
find_copies(struct gpd_session *session, struct gp_changes_range *range)
{
	struct gpd_host_arena *arena = gpd_host_memory_arena(session, range->address, range->size);

	if (!arena || !has_shadow(arena))
		return false;
	range->copy = gpd_address_to_pointer(range->address);
	range->shadow = arena->shadow + (range->address - arena->address);
	range->run_bitmap =
		gp_run_bitmap_at(arena->shadow + arena->size, arena->address, range->address);
	return true;
}

/* The lock must be held. Decodes the client's ranges. Returns their number, or -1 if they are
 * invalid or larger than the mapped memory. */
static int
ranges_decode(struct gpd_session *session, struct gp_bytes bytes, struct gp_changes_range *ranges)
{
	uint64_t left = mapped_bytes(session);
	struct gp_dec dec;
	size_t count = bytes.size / 16;

	if (bytes.size % 16 || count > GP_HOST_RANGES_MAX)
		return -1;
	gp_dec_init(&dec, bytes.data, bytes.size);
	for (size_t i = 0; i < count; i++) {
		ranges[i].address = gp_dec_u64(&dec);
		ranges[i].size = gp_dec_u64(&dec);
		if (!find_copies(session, &ranges[i]) || ranges[i].size > left)
			return -1;
		left -= ranges[i].size;
	}
	return (int)count;
}

/* The lock is held, so the reply is sent at once and the next such call waits for the bandwidth
 * limit. first: the member done or writes; the replies of all three calls have the same format. */
static void
changes_reply(struct gpd_session *session, void *reply_token, uint64_t first)
{
	struct gp_consistent_copy *consistent_copy = &session->host_memory->consistent_copy;
	const struct gp_reply_gpHostTake reply = {
		.done = first,
		.changes = { consistent_copy->ordered.bytes, consistent_copy->ordered.size },
	};
	size_t size = gp_reply_gpHostTake_size(&reply);
	void *fields = malloc(size);
	struct gp_enc enc;

	if (fields) {
		gp_enc_init(&enc, fields, size);
		gp_reply_gpHostTake_encode(&enc, &reply);
	}
	size = fields ? gp_enc_size(&enc) : 0;
	gpd_account_charge_bandwidth(&session->account, size);
	(void)gpd_session_reply_unthrottled(
		session, (uint16_t)((uintptr_t)reply_token >> 32), (uint32_t)(uintptr_t)reply_token,
		fields ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, fields, size);
	free(fields);
	gp_consistent_copy_trim(consistent_copy);
}

CUresult
gpd_host_fetch(struct gpd_session *session, struct gp_bytes bytes,
	       enum gp_consistent_copy_part part)
{
	struct gp_changes_range *ranges = calloc(bytes.size / 16 + 1, sizeof(*ranges));
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	uint64_t done;
	int count;

	if (!ranges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	count = ranges_decode(session, bytes, ranges);
	if (count >= 0) {
		done = gp_consistent_copy_build(&session->host_memory->consistent_copy, ranges,
						(size_t)count, part);
		result = done || part == GP_CONSISTENT_COPY_ALL || count == 0
				 ? GPD_LATER
				 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(ranges);
	if (result == GPD_LATER)
		changes_reply(session, gpd_wait_request(session), done);
	return result;
}

/* The lock must be held. Drops ranges that are no longer mapped. */
static void
ranges_find_again(struct gpd_session *session, struct gpd_host_request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < request->count; i++) {
		struct gp_changes_range range = request->ranges[i];

		if (find_copies(session, &range))
			request->ranges[count++] = range;
	}
	request->count = count;
}

CUresult
gpd_host_request_reply(struct gpd_session *session, struct gpd_host_request *request)
{
	struct gpd_host_memory *memory = session->host_memory;

	ranges_find_again(session, request);
	if (request->count > 0 &&
	    gp_consistent_copy_build(&memory->consistent_copy, request->ranges, request->count,
				     GP_CONSISTENT_COPY_ALL) == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	changes_reply(session, request->reply_token, memory->writes);
	return CUDA_SUCCESS;
}

bool
gpd_host_request_has_changes(struct gpd_session *session, struct gpd_host_request *request)
{
	ranges_find_again(session, request);
	for (size_t i = 0; i < request->count; i++) {
		const struct gp_changes_range *range = &request->ranges[i];

		if (!gp_changes_compare_equal(range->copy, range->shadow, range->size))
			return true;
	}
	return false;
}

/* The work is done. Runs in the responder, or in the executor if it was done already. */
static void
work_done_reply(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_request *request = arg;

	pthread_mutex_lock(&memory->copies_lock);
	if (result == CUDA_SUCCESS)
		result = gpd_host_request_reply(session, request);
	pthread_mutex_unlock(&memory->copies_lock);
	if (result != CUDA_SUCCESS)
		gpd_wait_reply(session, request->reply_token, result);
	free(request);
}

/* GPD_LATER: work_done_reply() will be called. */
static CUresult
work_wait(struct gpd_session *session, unsigned int kind, uint32_t id,
	  struct gpd_host_request *deferred_request)
{
	struct gpd_context *context;
	struct gpd_event_ref *ref;
	struct gpd_event *event;
	CUresult result;

	switch (kind) {
	case GP_HOST_AFTER_STREAM:
		return gpd_stream_await(session, id, work_done_reply, deferred_request);
	case GP_HOST_AFTER_EVENT:
		event = gpd_event_get(session, id);
		if (!event)
			return CUDA_ERROR_INVALID_HANDLE;
		ref = gpd_event_get_ref(event);
		gpd_wait_add_event(session, ref, work_done_reply, deferred_request);
		gpd_event_unref(ref);
		return GPD_LATER;
	case GP_HOST_AFTER_CONTEXT:
		context = gpd_context_get(session, id);
		if (!context)
			return CUDA_ERROR_INVALID_CONTEXT;
		result = gpd_wait_add_all(session, context, work_done_reply, deferred_request);
		return result == CUDA_SUCCESS ? GPD_LATER : result;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult
check_ranges(struct gpd_session *session, struct gp_bytes bytes, struct gpd_host_request *request)
{
	struct gpd_host_memory *memory = session->host_memory;
	uint64_t size = 0;
	int count;

	pthread_mutex_lock(&memory->copies_lock);
	count = ranges_decode(session, bytes, request->ranges);
	pthread_mutex_unlock(&memory->copies_lock);
	for (int i = 0; i < count; i++)
		size += request->ranges[i].size;
	if (count < 0 || size > GP_HOST_AFTER_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	request->count = (size_t)count;
	return CUDA_SUCCESS;
}

CUresult
gpd_host_request_create(struct gpd_session *session, struct gp_bytes ranges,
			struct gpd_host_request **request_p)
{
	size_t count = ranges.size / 16;
	struct gpd_host_request *request;
	CUresult result;

	if (!session->host_memory || count > GP_HOST_AFTER_RANGES)
		return CUDA_ERROR_INVALID_VALUE;
	request = calloc(1, sizeof(*request) + count * sizeof(request->ranges[0]));
	if (!request)
		return CUDA_ERROR_OUT_OF_MEMORY;
	request->reply_token = gpd_wait_request(session);
	result = check_ranges(session, ranges, request);
	if (result == CUDA_SUCCESS)
		*request_p = request;
	else
		free(request);
	return result;
}

CUresult
gpd_gpHostTakeBehind(struct gpd_session *session, const struct gp_args_gpHostTakeBehind *args,
		     struct gp_reply_gpHostTakeBehind *reply)
{
	struct gpd_host_request *deferred_request;
	CUresult result = gpd_host_request_create(session, args->ranges, &deferred_request);

	if (result != CUDA_SUCCESS)
		return result;
	result = work_wait(session, args->kind, args->name, deferred_request);
	if (result == GPD_LATER)
		return result;
	if (result == CUDA_SUCCESS)
		work_done_reply(session, deferred_request, CUDA_SUCCESS);
	else
		free(deferred_request);
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}
