/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/stream.h"

#include "client/context/fence.h"
#include "client/host/mirror.h"
#include "client/host/pending_copy.h"
#include "client/memory/pool.h"
#include "client/stream/sync.h"
#include "client/stream/watch.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The thread's own default streams, one for each context in which it has used it. */
struct thread_stream {
	struct thread_stream *next;
	void *token;
	uint32_t context; /* id of the context it belongs to */
};

static pthread_key_t thread_streams_key;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t next_number = 1;

static struct gpc_stream *
stream_of(const void *token)
{
	return gpc_handle_get(GPC_KIND_STREAM, token);
}

/* NULL: out of memory. */
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

/* The last record that gave this very stream work. */
static uint64_t
given_to_itself(const struct gpc_stream *stream)
{
	return gpc_session_given_to(stream->context->scope.session, stream->handle.id);
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
	/* What its place has had so far was another stream's. */
	atomic_store(&(*stream_p)->done, given_to_itself(*stream_p));
	atomic_store(&(*stream_p)->here, given_to_itself(*stream_p));
	atomic_store(&(*stream_p)->implied, given_to_itself(*stream_p));
	args.phStream = (*stream_p)->handle.id;
	result = gpc_post_cuStreamCreateWithPriority(context, &args);
	if (result != CUDA_SUCCESS)
		gpc_handle_remove(&(*stream_p)->handle);
	return result;
}

static bool
is_idle(const struct gpc_stream *stream, uint64_t given)
{
	return given <= atomic_load(&stream->done) || given <= atomic_load(&stream->context->done);
}

static CUresult
stream_drop(struct gpc_stream *stream)
{
	struct gp_args_cuStreamDestroy_v2 args = { .hStream = stream->handle.id };
	uint64_t given = given_to_itself(stream);
	CUresult result;

	if (given > atomic_load(&stream->done))
		gpc_raise(&stream->context->left, given);
	result = gpc_post_cuStreamDestroy_v2(stream->context, &args);
	gpc_watch_drop(&stream->watch);
	/* Only now, or another thread could announce a new stream of that place before. */
	gpc_handle_remove(&stream->handle);
	return result;
}

static void
thread_ended(void *list)
{
	struct thread_stream *entry = list;

	while (entry) {
		struct thread_stream *next = entry->next;
		struct gpc_stream *stream = stream_of(entry->token);

		if (stream && gpc_session_status(stream->context->scope.session) == CUDA_SUCCESS)
			(void)stream_drop(stream);
		free(entry);
		entry = next;
	}
}

static void
make_thread_streams_key(void)
{
	(void)pthread_key_create(&thread_streams_key, thread_ended);
}

/* Where the thread's default streams are: gpc_enter() has said the primary context of a green one.
 */
static struct gpc_context *
green_of(struct gpc_context *context)
{
	struct gpc_context *current = gpc_context_get_current();

	return current && current->parent == context ? current : context;
}

static CUresult
per_thread_stream(struct gpc_context *context, struct gpc_stream **stream_p)
{
	struct thread_stream *entry, **list_p;
	CUresult result;

	/* cuStreamGetCtx_v2: a green context has none. */
	if (green_of(context) != context)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_once(&thread_streams_once, make_thread_streams_key);
	entry = pthread_getspecific(thread_streams_key);
	for (; entry; entry = entry->next) {
		if (entry->context != context->handle.id)
			continue;
		*stream_p = stream_of(entry->token);
		if (*stream_p)
			return CUDA_SUCCESS;
		break; /* its context was reset: the place is used again */
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
		return per_thread_stream(context, stream_p);
	stream = hStream == CU_STREAM_LEGACY ? green_of(context)->legacy : stream_of(hStream);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	*stream_p = stream;
	return CUDA_SUCCESS;
}

CUresult
gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p)
{
	if (gpc_per_thread_default)
		return per_thread_stream(context, stream_p);
	*stream_p = green_of(context)->legacy;
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

/* A context went while its work was perhaps under way: of that nothing is ever known. */
static atomic_bool lost_track;

static void
forget_if_of(void *object, void *context)
{
	struct gpc_stream *stream = object;

	if (stream->context != context && stream->green != context)
		return;
	if (!is_idle(stream, given_to_itself(stream)))
		atomic_store(&lost_track, true);
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
gpc_stream_forget_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_STREAM, forget_if_of, context);
	context->legacy = NULL;
}

void
gpc_stream_context_made(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success)
{
	if (!success)
		gpc_stream_forget_context(context);
}

CUresult
gpc_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	return gpc_stream_create_in(green_of(context), flags, priority, phStream);
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
	stream = stream_of(hStream);
	if (!stream || stream->legacy || stream->per_thread)
		return CUDA_ERROR_INVALID_HANDLE;
	return stream_drop(stream);
}

void
gpc_stream_set_done(struct gpc_stream *stream, uint64_t given)
{
	gpc_raise(&stream->done, given);
}

/* The last record that gave it work.  The legacy stream stands for all that wait for it. */
static uint64_t
given_to(const struct gpc_stream *stream)
{
	const struct gpc_session *session = stream->context->scope.session;

	return stream->legacy ? gpc_session_given(session) : given_to_itself(stream);
}

/* The last work that is not known to be done, of those that wait for the legacy stream. */
struct pending {
	const struct gpc_stream *legacy;
	uint64_t given;
};

static void
find_pending(void *object, void *arg)
{
	const struct gpc_stream *stream = object;
	struct pending *pending = arg;
	uint64_t given;

	if (__atomic_load_n(&stream->context, __ATOMIC_ACQUIRE) != pending->legacy->context ||
	    stream->green != pending->legacy->green ||
	    (!stream->legacy && (stream->flags & CU_STREAM_NON_BLOCKING)))
		return;
	given = given_to_itself(stream);
	if (given > pending->given && given > atomic_load(&pending->legacy->done) &&
	    !is_idle(stream, given))
		pending->given = given;
}

uint64_t
gpc_stream_pending(const struct gpc_stream *stream)
{
	struct pending pending = { .legacy = stream };
	uint64_t given = given_to_itself(stream);

	if (!stream->legacy)
		return is_idle(stream, given) ? 0 : given;
	gpc_handle_each(GPC_KIND_STREAM, find_pending, &pending);
	return pending.given;
}

bool
gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t given, bool *here_p)
{
	struct gpc_stream *stream = gpc_handle_find(GPC_KIND_STREAM, id);

	*here_p = given <= atomic_load(&context->done);
	if (*here_p || !stream)
		return *here_p;
	*here_p = given <= atomic_load(&stream->here);
	return given <= atomic_load(&stream->done);
}

/* Whether streams are done, as far as they have been looked at: a context's, or a session's. */
struct all_done {
	const struct gpc_context *context; /* or NULL */
	const struct gpc_session *session;
	bool legacy; /* one was among them; not where there is no memory for a list of them */
	bool done, here;
};

static void
look_at(void *object, void *arg)
{
	struct gpc_stream *stream = object;
	struct all_done *all = arg;
	const struct gpc_context *context = __atomic_load_n(&stream->context, __ATOMIC_ACQUIRE);
	uint64_t given;

	/* Another thread is making it: nothing has been given to it. */
	if (!context)
		return;
	if (all->context ? context != all->context : context->scope.session != all->session)
		return;
	given = given_to_itself(stream);
	all->legacy |= stream->legacy;
	all->done &= is_idle(stream, given);
	all->here &= given <= atomic_load(&stream->here) || given <= atomic_load(&context->done);
}

bool
gpc_stream_are_all_done(struct gpc_context *context, bool *here_p)
{
	struct all_done all = { .context = context, .done = true, .here = true };

	gpc_handle_each(GPC_KIND_STREAM, look_at, &all);
	*here_p = all.here;
	/* In this order: a stream that goes meanwhile has left its work here. */
	return all.legacy && all.done && atomic_load(&context->left) <= atomic_load(&context->done);
}

static void
look_at_left(void *object, void *arg)
{
	struct gpc_context *context = object;
	struct all_done *all = arg;

	if (context->scope.session == all->session)
		all->done &= atomic_load(&context->left) <= atomic_load(&context->done);
}

bool
gpc_stream_knows_done(const struct gpc_session *session)
{
	struct all_done all = { .session = session, .done = true };

	gpc_handle_each(GPC_KIND_STREAM, look_at, &all);
	gpc_handle_each(GPC_KIND_CONTEXT, look_at_left, &all);
	return all.legacy && all.done && !atomic_load(&lost_track);
}

/* Other streams than the non-blocking ones wait for the legacy stream's work, too. */
bool
gpc_stream_is_known_idle(const struct gpc_stream *stream)
{
	return ((stream->flags & CU_STREAM_NON_BLOCKING) && gpc_stream_pending(stream) == 0) ||
	       gpc_fence_is_needless(stream->context->scope.session);
}

void
gpc_stream_set_here(struct gpc_stream *stream, uint64_t given)
{
	if (given_to(stream) == given)
		atomic_store(&stream->here, given);
}

/* The answer of a copy that is the stream's last work says that the stream is done; one that failed
 * says nothing of what was before it. */
static CUresult
wait_until_done(struct gpc_stream *stream, uint64_t given)
{
	const struct gp_args_cuStreamSynchronize args = { .hStream = stream->handle.id };
	CUresult copied = CUDA_SUCCESS, result;

	if (gpc_pending_copy_await(stream->context->scope.session, stream->handle.id, given,
				   &copied) &&
	    copied == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	result = gpc_wait_cuStreamSynchronize(stream->context, &args);
	return copied == CUDA_SUCCESS ? result : copied;
}

/* Whether all that this work has changed of the program's memory is here. */
static bool
is_here(const struct gpc_stream *stream, uint64_t given)
{
	return given <= atomic_load(&stream->here) || given <= atomic_load(&stream->context->done);
}

/* What this work has changed is fetched once. */
static CUresult
after_wait(struct gpc_stream *stream, uint64_t given, struct gpc_mirror_fetch *fetch,
	   CUresult result)
{
	if (!fetch && is_here(stream, given))
		return result;
	result = gpc_mirror_after_wait(stream->context->scope.session, fetch, result);
	if (result == CUDA_SUCCESS)
		atomic_store(&stream->here, given);
	return result;
}

static CUresult
stream_wait(struct gpc_stream *stream, uint64_t given)
{
	struct gpc_session *session = stream->context->scope.session;
	struct gpc_mirror_fetch *fetch = NULL;
	CUresult result;

	if (is_idle(stream, given)) {
		result = gpc_session_result(session);
	} else {
		fetch = gpc_mirror_before_wait(session, GP_HOST_BEHIND_STREAM, stream->handle.id,
					       GP_CALL_cuStreamSynchronize);
		result = wait_until_done(stream, given);
		if (result == CUDA_SUCCESS)
			gpc_stream_set_done(stream, given);
	}
	return after_wait(stream, given, fetch, result);
}

CUresult
gpc_stream_fence(struct gpc_stream *stream)
{
	uint64_t given = given_to(stream);

	return is_idle(stream, given) && is_here(stream, given)
		       ? gpc_session_result(stream->context->scope.session)
		       : stream_wait(stream, given);
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
	uint64_t given;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	given = given_to(stream);
	if (is_idle(stream, given)) {
		result = gpc_session_result(stream->context->scope.session);
	} else if (gpc_sync_is_implied(stream, 1) &&
		   gpc_sync_is_implied(stream, gpc_stream_pending(stream))) {
		return gpc_stream_fence(stream);
	} else {
		watched = (struct gpc_watched){ stream->context, stream->handle.id, false };
		result = gpc_watch_ask(&stream->watch, given, &watched);
		if (result == CUDA_SUCCESS)
			gpc_stream_set_done(stream, given);
	}
	return after_wait(stream, given, NULL, result);
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
gpc_stream_lend(CUstream hStream)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_stream *stream = stream_of(hStream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	return gpc_context_push(stream->green ? stream->green : stream->context);
}

CUcontext
gpc_stream_context(const struct gpc_stream *stream)
{
	return (stream->green ? stream->green : stream->context)->handle.token;
}

CUgreenCtx
gpc_stream_green(const struct gpc_stream *stream)
{
	return stream->green ? stream->green->green : NULL;
}
