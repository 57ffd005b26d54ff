/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/host_function.h"

#include "client/base/handle.h"
#include "client/base/log.h"
#include "client/base/thread.h"
#include "client/stream/stream.h"
#include "client/wire/session_state.h"
#include "gpc_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

struct gpc_host_function {
	struct gpc_handle handle;
	struct gpc_host_function *prev, *next; /* of all that are not done */
	struct gpc_host_function *turn_next;
	struct gpc_context *context;
	struct gpc_session *session;
	CUhostFn function; /* one of the two */
	CUstreamCallback callback;
	CUstream stream; /* as the application named it */
	void *data;
	CUresult result;
	bool told;
};

__thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

void
gpc_host_functions_init(struct gpc_session *session)
{
	(void)pthread_mutex_init(&session->functions.lock, NULL);
	gpc_cond_init(&session->functions.wanted);
}

/* The thread that runs them has ended. */
void
gpc_host_functions_fini(struct gpc_session *session)
{
	struct gpc_host_functions *functions = &session->functions;
	struct gpc_host_function *function, *next;

	DL_FOREACH_SAFE(functions->all, function, next)
	{
		gpc_handle_remove(&function->handle);
		free(function);
	}
	(void)pthread_cond_destroy(&functions->wanted);
	(void)pthread_mutex_destroy(&functions->lock);
}

void
gpc_host_functions_end(struct gpc_session *session)
{
	struct gpc_host_functions *functions = &session->functions;

	(void)pthread_mutex_lock(&functions->lock);
	functions->stop = true;
	(void)pthread_cond_signal(&functions->wanted);
	(void)pthread_mutex_unlock(&functions->lock);
}

static void
run(const struct gpc_host_function *function, CUresult result)
{
	gpc_in_host_function = true;
	if (function->callback)
		function->callback(function->stream, result, function->data);
	else if (result == CUDA_SUCCESS)
		function->function(function->data);
	gpc_in_host_function = false;
}

/* With the lock, under which the reader of the connection looks for it. */
static void
forget_locked(struct gpc_host_functions *functions, struct gpc_host_function *function)
{
	DL_DELETE(functions->all, function);
	gpc_handle_remove(&function->handle);
}

/* One that the daemon did not take is not answered.  Another function may have the name when the
 * answer is on its way, not before. */
static void
answer(struct gpc_host_function *function)
{
	struct gp_args_gpHostFunctionDone args = { .function = function->handle.id };
	struct gpc_session *session = function->session;

	if (function->result == CUDA_SUCCESS)
		(void)gpc_post_gpHostFunctionDone(function->context, &args);
	else
		gpc_call_function_refused(session);
	(void)pthread_mutex_lock(&session->functions.lock);
	forget_locked(&session->functions, function);
	(void)pthread_mutex_unlock(&session->functions.lock);
	free(function);
}

/* With the lock, after the session's end: in the order in which they were posted. */
static void
drop_all_locked(struct gpc_session *session)
{
	struct gpc_host_functions *functions = &session->functions;
	CUresult result = gpc_session_status(session);

	while (functions->all) {
		struct gpc_host_function *function = functions->all;

		forget_locked(functions, function);
		(void)pthread_mutex_unlock(&functions->lock);
		/* At the program's exit nobody wants to hear of it. */
		if (result != CUDA_ERROR_DEINITIALIZED)
			run(function, result);
		free(function);
		(void)pthread_mutex_lock(&functions->lock);
	}
}

static void *
run_all(void *arg)
{
	struct gpc_session *session = arg;
	struct gpc_host_functions *functions = &session->functions;

	(void)pthread_mutex_lock(&functions->lock);
	while (!functions->stop) {
		struct gpc_host_function *function = functions->turn;

		if (!function) {
			(void)pthread_cond_wait(&functions->wanted, &functions->lock);
			continue;
		}
		functions->turn = function->turn_next;
		(void)pthread_mutex_unlock(&functions->lock);
		run(function, function->result);
		answer(function);
		(void)pthread_mutex_lock(&functions->lock);
	}
	drop_all_locked(session);
	functions->started = false;
	(void)pthread_mutex_unlock(&functions->lock);
	gpc_thread_ended(session);
	return NULL;
}

bool
gpc_host_function_turn(struct gpc_session *session, uint32_t id, CUresult result)
{
	struct gpc_host_functions *functions = &session->functions;
	struct gpc_host_function *function;
	bool known;

	(void)pthread_mutex_lock(&functions->lock);
	function = (struct gpc_host_function *)gpc_handle_find(GPC_KIND_HOST_FUNCTION, id);
	known = function && function->session == session && !function->told;
	if (known) {
		function->told = true;
		function->result = result;
		if (functions->turn)
			functions->last->turn_next = function;
		else
			functions->turn = function;
		functions->last = function;
		(void)pthread_cond_signal(&functions->wanted);
	}
	(void)pthread_mutex_unlock(&functions->lock);
	if (known)
		gpc_receiver_note_came(session);
	return known;
}

/* Enters it, and sees to it that there is a thread for it. */
static CUresult
enter(struct gpc_host_function *function)
{
	struct gpc_session *session = function->session;
	struct gpc_host_functions *functions = &session->functions;
	int r = gpc_handle_add(GPC_KIND_HOST_FUNCTION, &function->handle);

	if (r != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_mutex_lock(&functions->lock);
	if (functions->stop)
		r = -ESHUTDOWN;
	else if (!functions->started)
		r = gpc_thread_start(session, run_all, session, "gpupool-host");
	if (r == 0) {
		functions->started = true;
		DL_APPEND(functions->all, function);
	}
	(void)pthread_mutex_unlock(&functions->lock);
	if (r == 0)
		return CUDA_SUCCESS;
	gpc_handle_remove(&function->handle);
	return r == -ESHUTDOWN ? gpc_session_status(session) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* It could not be posted; if that ended the session, the thread may have dropped it already. */
static void
take_back(struct gpc_session *session, uint32_t id)
{
	struct gpc_host_functions *functions = &session->functions;
	struct gpc_host_function *function;

	(void)pthread_mutex_lock(&functions->lock);
	function = (struct gpc_host_function *)gpc_handle_find(GPC_KIND_HOST_FUNCTION, id);
	if (function)
		forget_locked(functions, function);
	(void)pthread_mutex_unlock(&functions->lock);
	free(function);
}

static CUresult
post(struct gpc_stream *stream, struct gpc_host_function *function)
{
	struct gp_args_gpHostFunction args = { .stream = stream->handle.id };
	struct gpc_session *session = stream->context->device->session;
	CUresult result;

	function->context = stream->context;
	function->session = session;
	result = enter(function);
	if (result != CUDA_SUCCESS) {
		free(function);
		return result;
	}
	args.function = function->handle.id;
	gpc_receiver_expect_note(session);
	result = gpc_post_gpHostFunction(stream->context, &args);
	if (result != CUDA_SUCCESS) {
		take_back(session, args.function);
		gpc_receiver_note_came(session);
	}
	return result;
}

static CUresult
launch(CUstream hStream, const struct gpc_host_function *wanted)
{
	struct gpc_host_function *function;
	struct gpc_context *context;
	struct gpc_stream *stream;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_stream_lookup(context, hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	function = malloc(sizeof(*function));
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*function = *wanted;
	function->stream = hStream;
	return post(stream, function);
}

CUresult
gpc_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct gpc_host_function wanted = { .function = fn, .data = userData };

	return fn ? launch(hStream, &wanted) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
			unsigned int flags)
{
	struct gpc_host_function wanted = { .callback = callback, .data = userData };

	return callback && flags == 0 ? launch(hStream, &wanted) : CUDA_ERROR_INVALID_VALUE;
}
