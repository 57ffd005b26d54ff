/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/stream.h"

#include "client/context/fence.h"
#include "client/host/coherence.h"
#include "client/host/pending_copy.h"
#include "client/memory/pool.h"
#include "client/session/session.h"
#include "client/stream/completion_watch.h"
#include "client/stream/sync.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Per-thread default streams of a thread, one per context in which it has used one. */
struct thread_stream {
	struct thread_stream *next;
	void *token;
	uint32_t context; /* wire ID of the context */
};

static pthread_key_t thread_streams_key;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t next_number = 1;

static struct gpc_stream *
token_to_stream(const void *token)
{
	return gpc_handle_from_token(GPC_KIND_STREAM, token);
}

/* Returns NULL if memory is exhausted. */
static struct gpc_stream *
stream_create(struct gpc_context *context, unsigned int flags, int priority)
{
	struct gpc_stream *stream = gpc_handle_new(GPC_KIND_STREAM, sizeof(*stream));

	if (!stream)
		return NULL;
	__atomic_store_n(&stream->context, context->parent ? context->parent : context,
			 __ATOMIC_RELEASE);
	stream->green = context->parent ? context : NULL;
	stream->flags = flags;
	stream->priority = priority;
	atomic_store(&stream->attributes_set, 0);
	__atomic_store_n(&stream->number, atomic_fetch_add(&next_number, 1), __ATOMIC_RELEASE);
	return stream;
}

/* Returns the number of the last work given to this stream itself. */
static uint64_t
stream_get_own_issued(const struct gpc_stream *stream)
{
	return gpc_session_issued_to(stream->context->scope.session, stream->handle.id);
}

/* Creates the stream here and on the daemon. */
static CUresult
stream_announce(struct gpc_context *context, unsigned int flags, int priority,
		struct gpc_stream **stream_p)
{
	struct gp_args_cuStreamCreateWithPriority args = { .flags = flags, .priority = priority };
	CUresult result;

	*stream_p = stream_create(context, flags, priority);
	if (!*stream_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Work numbers of the slot so far belong to other streams. */
	atomic_store(&(*stream_p)->done, stream_get_own_issued(*stream_p));
	atomic_store(&(*stream_p)->fetched, stream_get_own_issued(*stream_p));
	atomic_store(&(*stream_p)->implied, stream_get_own_issued(*stream_p));
	args.phStream = (*stream_p)->handle.id;
	result = gpc_post_cuStreamCreateWithPriority(context, &args);
	if (result != CUDA_SUCCESS)
		gpc_handle_remove(&(*stream_p)->handle);
	return result;
}

static bool
stream_is_idle(const struct gpc_stream *stream, uint64_t issued)
{
	return issued <= atomic_load(&stream->done) ||
	       issued <= atomic_load(&stream->context->done);
}

static CUresult
stream_drop(struct gpc_stream *stream)
{
	struct gp_args_cuStreamDestroy_v2 args = { .hStream = stream->handle.id };
	uint64_t issued = stream_get_own_issued(stream);
	CUresult result;

	if (issued > atomic_load(&stream->done))
		gpc_atomic_max(&stream->context->left, issued);
	result = gpc_post_cuStreamDestroy_v2(stream->context, &args);
	gpc_watch_drop(&stream->watch);
	/* Removed only now; otherwise another thread could announce a new stream with the same ID
	 * first. */
	gpc_handle_remove(&stream->handle);
	return result;
}

static void
thread_streams_destroy(void *list)
{
	struct thread_stream *entry = list;

	while (entry) {
		struct thread_stream *next = entry->next;
		struct gpc_stream *stream = token_to_stream(entry->token);

		if (stream && gpc_session_status(stream->context->scope.session) == CUDA_SUCCESS &&
		    gpc_handle_claim(GPC_KIND_STREAM, entry->token))
			(void)stream_drop(stream);
		free(entry);
		entry = next;
	}
}

static void
thread_streams_key_create(void)
{
	(void)pthread_key_create(&thread_streams_key, thread_streams_destroy);
}

/* Returns the context whose default streams the thread uses: for a green context, gpc_enter()
 * returns its primary context. */
static struct gpc_context *
context_get_green(struct gpc_context *context)
{
	struct gpc_context *current = gpc_context_get_current();

	return current && current->parent == context ? current : context;
}

static CUresult
context_get_per_thread_stream(struct gpc_context *context, struct gpc_stream **stream_p)
{
	struct thread_stream *entry, **list_p;
	CUresult result;

	/* cuStreamGetCtx_v2: a green context has no per-thread stream. */
	if (context_get_green(context) != context)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_once(&thread_streams_once, thread_streams_key_create);
	entry = pthread_getspecific(thread_streams_key);
	for (; entry; entry = entry->next) {
		if (entry->context != context->handle.id)
			continue;
		*stream_p = token_to_stream(entry->token);
		if (*stream_p)
			return CUDA_SUCCESS;
		break; /* the context was reset: the entry is reused */
	}
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return CUDA_ERROR_OUT_OF_MEMORY;
		entry->context = context->handle.id;
		list_p = &entry->next;
		*list_p = pthread_getspecific(thread_streams_key);
		(void)pthread_setspecific(thread_streams_key, entry);
	}
	result = stream_announce(context, CU_STREAM_DEFAULT, 0, stream_p);
	if (result != CUDA_SUCCESS)
		return result;
	(*stream_p)->per_thread = true;
	entry->token = (*stream_p)->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_stream_lookup(struct gpc_context *context, CUstream hStream, struct gpc_stream **stream_p)
{
	struct gpc_stream *stream;

	if (hStream == NULL)
		return gpc_stream_default(context, stream_p);
	if (hStream == CU_STREAM_PER_THREAD)
		return context_get_per_thread_stream(context, stream_p);
	stream = hStream == CU_STREAM_LEGACY ? context_get_green(context)->legacy
					     : token_to_stream(hStream);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	*stream_p = stream;
	return CUDA_SUCCESS;
}

CUresult
gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p)
{
	if (gpc_per_thread_default)
		return context_get_per_thread_stream(context, stream_p);
	*stream_p = context_get_green(context)->legacy;
	return *stream_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_lookup(*context_p, hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	*context_p = stream->context;
	*id_p = stream->handle.id;
	return CUDA_SUCCESS;
}

/* A context was destroyed while its work may have been in progress, whose completion can never be
 * known. */
static atomic_bool idle_unknown;

static void
stream_drop_if_of_context(void *object, void *context)
{
	struct gpc_stream *stream = object;

	if (stream->context != context && stream->green != context)
		return;
	if (!gpc_handle_claim(GPC_KIND_STREAM, stream->handle.token))
		return;
	if (!stream_is_idle(stream, stream_get_own_issued(stream)))
		atomic_store(&idle_unknown, true);
	gpc_watch_drop(&stream->watch);
	gpc_handle_remove(&stream->handle);
}

CUresult
gpc_stream_prepare_context(struct gpc_context *context, struct gp_args_gpContextCreate *args)
{
	struct gpc_stream *stream = stream_create(context, CU_STREAM_DEFAULT, 0);

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->legacy = true;
	context->legacy = stream;
	args->legacy = stream->handle.id;
	return CUDA_SUCCESS;
}

void
gpc_stream_drop_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_STREAM, stream_drop_if_of_context, context);
	context->legacy = NULL;
}

void
gpc_stream_context_made(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success)
{
	if (!success)
		gpc_stream_drop_context(context);
}

CUresult
gpc_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	return result == CUDA_SUCCESS
		       ? gpc_stream_create_in(context_get_green(context), flags, priority, phStream)
		       : result;
}

CUresult
gpc_stream_create_in(struct gpc_context *context, unsigned int flags, int priority,
		     CUstream *phStream)
{
	struct gpc_stream *stream;
	CUresult result;

	if (!phStream || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	if (priority > context->device->priority_least)
		priority = context->device->priority_least;
	if (priority < context->device->priority_greatest)
		priority = context->device->priority_greatest;
	result = stream_announce(context, flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*phStream = stream->handle.token;
	return result;
}

CUresult
gpc_cuStreamDestroy_v2(CUstream hStream)
{
	struct gpc_stream *stream;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	stream = token_to_stream(hStream);
	if (!stream || stream->legacy || stream->per_thread ||
	    !gpc_handle_claim(GPC_KIND_STREAM, hStream))
		return CUDA_ERROR_INVALID_HANDLE;
	return stream_drop(stream);
}

void
gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued)
{
	gpc_atomic_max(&stream->done, issued);
}

/* Returns the number of the last work given to the stream. For the legacy stream this includes all
 * streams that wait for it. */
static uint64_t
stream_get_issued(const struct gpc_stream *stream)
{
	const struct gpc_session *session = stream->context->scope.session;

	return stream->legacy ? gpc_session_issued(session) : stream_get_own_issued(stream);
}

/* The last work that is not known to be done, among the streams that synchronize with the legacy
 * stream. */
struct pending {
	const struct gpc_stream *legacy;
	uint64_t issued;
};

static void
pending_add_stream(void *object, void *arg)
{
	const struct gpc_stream *stream = object;
	struct pending *pending = arg;
	uint64_t issued;

	if (__atomic_load_n(&stream->context, __ATOMIC_ACQUIRE) != pending->legacy->context ||
	    stream->green != pending->legacy->green ||
	    (!stream->legacy && (stream->flags & CU_STREAM_NON_BLOCKING)))
		return;
	issued = stream_get_own_issued(stream);
	if (issued > pending->issued && issued > atomic_load(&pending->legacy->done) &&
	    !stream_is_idle(stream, issued))
		pending->issued = issued;
}

uint64_t
gpc_stream_pending(const struct gpc_stream *stream)
{
	struct pending pending = { .legacy = stream };
	uint64_t issued = stream_get_own_issued(stream);

	if (!stream->legacy)
		return stream_is_idle(stream, issued) ? 0 : issued;
	gpc_handle_each(GPC_KIND_STREAM, pending_add_stream, &pending);
	return pending.issued;
}

bool
gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t issued, bool *fetched_p)
{
	struct gpc_stream *stream = gpc_handle_from_id(GPC_KIND_STREAM, id);

	*fetched_p = issued <= atomic_load(&context->done);
	if (*fetched_p || !stream)
		return *fetched_p;
	*fetched_p = issued <= atomic_load(&stream->fetched);
	return issued <= atomic_load(&stream->done);
}

/* Result of checking the streams of a context, or of a session. */
struct all_done {
	const struct gpc_context *context; /* or NULL */
	const struct gpc_session *session;
	bool legacy; /* a legacy stream was found; false if there was no memory for the list of
			streams */
	bool done, fetched;
};

static void
all_done_check_stream(void *object, void *arg)
{
	struct gpc_stream *stream = object;
	struct all_done *all = arg;
	const struct gpc_context *context = __atomic_load_n(&stream->context, __ATOMIC_ACQUIRE);
	uint64_t issued;

	/* Another thread is creating the stream: it has no work yet. */
	if (!context)
		return;
	if (all->context ? context != all->context : context->scope.session != all->session)
		return;
	issued = stream_get_own_issued(stream);
	all->legacy |= stream->legacy;
	all->done &= stream_is_idle(stream, issued);
	all->fetched &=
		issued <= atomic_load(&stream->fetched) || issued <= atomic_load(&context->done);
}

bool
gpc_stream_are_all_done(struct gpc_context *context, bool *fetched_p)
{
	struct all_done all = { .context = context, .done = true, .fetched = true };

	gpc_handle_each(GPC_KIND_STREAM, all_done_check_stream, &all);
	*fetched_p = all.fetched;
	/* In this order: a stream destroyed in the meantime has recorded its work in `left`. */
	return all.legacy && all.done && atomic_load(&context->left) <= atomic_load(&context->done);
}

static void
all_done_check_context(void *object, void *arg)
{
	struct gpc_context *context = object;
	struct all_done *all = arg;

	if (context->scope.session == all->session)
		all->done &= atomic_load(&context->left) <= atomic_load(&context->done);
}

bool
gpc_stream_session_is_idle(const struct gpc_session *session)
{
	struct all_done all = { .session = session, .done = true };

	gpc_handle_each(GPC_KIND_STREAM, all_done_check_stream, &all);
	gpc_handle_each(GPC_KIND_CONTEXT, all_done_check_context, &all);
	return all.legacy && all.done && !atomic_load(&idle_unknown);
}

/* Other streams than non-blocking ones also wait for the legacy stream's work. */
bool
gpc_stream_is_known_idle(const struct gpc_stream *stream)
{
	return ((stream->flags & CU_STREAM_NON_BLOCKING) && gpc_stream_pending(stream) == 0) ||
	       gpc_fence_is_redundant(stream->context->scope.session);
}

void
gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued)
{
	if (stream_get_issued(stream) == issued)
		atomic_store(&stream->fetched, issued);
}

/* The reply of a copy that is the stream's last work shows that the stream is done; a failed copy
 * shows nothing about earlier work. */
static CUresult
stream_wait_until_done(struct gpc_stream *stream, uint64_t issued)
{
	const struct gp_args_cuStreamSynchronize args = { .hStream = stream->handle.id };
	CUresult copied = CUDA_SUCCESS, result;

	if (gpc_pending_copy_await(stream->context->scope.session, stream->handle.id, issued,
				   &copied) &&
	    copied == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	result = gpc_wait_cuStreamSynchronize(stream->context, &args);
	return copied == CUDA_SUCCESS ? result : copied;
}

/* Returns whether all changes of this work to the program's memory have been fetched. */
static bool
stream_is_fetched(const struct gpc_stream *stream, uint64_t issued)
{
	return issued <= atomic_load(&stream->fetched) ||
	       issued <= atomic_load(&stream->context->done);
}

/* Fetches the changes of this work once. */
static CUresult
stream_after_wait(struct gpc_stream *stream, uint64_t issued, struct gpc_coherence_fetch *fetch,
		  CUresult result)
{
	if (!fetch && stream_is_fetched(stream, issued))
		return result;
	result = gpc_coherence_after_wait(stream->context->scope.session, fetch, result);
	if (result == CUDA_SUCCESS)
		atomic_store(&stream->fetched, issued);
	return result;
}

static CUresult
stream_wait(struct gpc_stream *stream, uint64_t issued)
{
	struct gpc_session *session = stream->context->scope.session;
	struct gpc_coherence_fetch *fetch = NULL;
	CUresult result;

	if (stream_is_idle(stream, issued)) {
		result = gpc_session_result(session);
	} else {
		fetch = gpc_coherence_before_wait(session, GP_HOST_AFTER_STREAM, stream->handle.id,
						  GP_CALL_cuStreamSynchronize);
		result = stream_wait_until_done(stream, issued);
		if (result == CUDA_SUCCESS)
			gpc_stream_set_done(stream, issued);
	}
	return stream_after_wait(stream, issued, fetch, result);
}

CUresult
gpc_stream_fence(struct gpc_stream *stream)
{
	uint64_t issued = stream_get_issued(stream);

	return stream_is_idle(stream, issued) && stream_is_fetched(stream, issued)
		       ? gpc_session_result(stream->context->scope.session)
		       : stream_wait(stream, issued);
}

CUresult
gpc_cuStreamSynchronize(CUstream hStream)
{
	struct gpc_stream *stream;
	uint64_t frees = gpc_pool_frees();
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_stream_fence(stream);
	if (result == CUDA_SUCCESS)
		gpc_pool_stream_done(stream->context, stream->number, frees);
	return result;
}

CUresult
gpc_cuStreamQuery(CUstream hStream)
{
	struct gpc_watched watched;
	struct gpc_stream *stream;
	uint64_t issued;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	issued = stream_get_issued(stream);
	if (stream_is_idle(stream, issued)) {
		result = gpc_session_result(stream->context->scope.session);
	} else if (gpc_sync_is_implied(stream, 1) &&
		   gpc_sync_is_implied(stream, gpc_stream_pending(stream))) {
		return gpc_stream_fence(stream);
	} else {
		watched = (struct gpc_watched){ stream->context, stream->handle.id, false };
		result = gpc_watch_query(&stream->watch, issued, &watched);
		if (result == CUDA_SUCCESS)
			gpc_stream_set_done(stream, issued);
	}
	return stream_after_wait(stream, issued, NULL, result);
}

CUresult
gpc_stream_fence_functions(struct gpc_stream *stream)
{
	return gpc_session_has_host_functions(stream->context->scope.session)
		       ? gpc_stream_fence(stream)
		       : CUDA_SUCCESS;
}

uint64_t
gpc_stream_context_number(const struct gpc_context *context)
{
	return context && gpc_context_is_active(context) && context->legacy
		       ? context->legacy->number
		       : 0;
}

CUresult
gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	return result == CUDA_SUCCESS ? gpc_stream_lookup(context, hStream, stream_p) : result;
}

CUresult
gpc_stream_push_context(CUstream hStream)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_stream *stream = token_to_stream(hStream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	return gpc_context_push(stream->green ? stream->green : stream->context);
}

CUcontext
gpc_stream_get_context(const struct gpc_stream *stream)
{
	return (stream->green ? stream->green : stream->context)->handle.token;
}

CUgreenCtx
gpc_stream_get_green(const struct gpc_stream *stream)
{
	return stream->green ? stream->green->green : NULL;
}
