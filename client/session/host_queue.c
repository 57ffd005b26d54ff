/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/host_queue.h"

#include "base/lock.h"
#include "client/base/handle.h"
#include "client/base/log_history.h"
#include "client/pages/pages.h"
#include "client/session/session_internal.h"
#include "client/session/session_threads.h"
#include "gp_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

struct gpc_host_function {
	struct gpc_handle handle;
	struct gpc_host_function *prev, *next; /* list of all functions that are not done */
	struct gpc_host_function *due_next;
	const struct gpc_scope *scope;
	struct gpc_host_call call;
	CUresult result;
	bool is_due;
	bool local; /* not known to the daemon */
};

void
gpc_host_queue_init(struct gpc_session *session)
{
	(void)pthread_mutex_init(&session->functions.lock, NULL);
	for (int i = 0; i < GPC_HOST_RUNNERS; i++)
		gp_cond_init(&session->functions.runners[i].wanted);
}

void
gpc_host_queue_fini(struct gpc_session *session)
{
	struct gpc_host_functions *functions = &session->functions;
	struct gpc_host_function *function, *next;

	DL_FOREACH_SAFE(functions->all, function, next)
	{
		gpc_handle_remove(&function->handle);
		free(function);
	}
	for (int i = 0; i < GPC_HOST_RUNNERS; i++)
		(void)pthread_cond_destroy(&functions->runners[i].wanted);
	(void)pthread_mutex_destroy(&session->functions.lock);
}

void
gpc_host_queue_stop(struct gpc_session *session)
{
	struct gpc_host_functions *functions = &session->functions;

	(void)pthread_mutex_lock(&session->functions.lock);
	for (int i = 0; i < GPC_HOST_RUNNERS; i++)
		(void)pthread_cond_signal(&functions->runners[i].wanted);
	(void)pthread_mutex_unlock(&session->functions.lock);
}

static struct gpc_host_runner *
function_get_runner(struct gpc_host_functions *functions, const struct gpc_host_function *function)
{
	return &functions->runners[function->call.library ? GPC_HOST_LIBRARY : GPC_HOST_PROGRAM];
}

static void
function_run(const struct gpc_host_function *function, CUresult result)
{
	const struct gpc_host_call *call = &function->call;

	if (call->library) {
		call->callback(NULL, result, call->data);
		return;
	}
	/* Faults of managed memory inside the function must not wait for streams, as these may wait
	 * for this function. */
	gpc_page_faults_set_direct(true);
	gpc_in_host_function = true;
	if (call->callback)
		call->callback(call->stream, result, call->data);
	else if (result == CUDA_SUCCESS)
		call->function(call->data);
	gpc_in_host_function = false;
	gpc_page_faults_set_direct(false);
	if (gpc_pages_any())
		gpc_pages_flush_direct();
}

/* The reader of the connection searches the list under this lock. */
static void
function_remove_locked(struct gpc_host_functions *functions, struct gpc_host_function *function)
	GP_LOCKED(functions->lock)
{
	DL_DELETE(functions->all, function);
	gpc_handle_remove(&function->handle);
}

static CUresult
function_post_done(const struct gpc_host_function *function)
{
	const struct gp_args_gpHostFunctionDone args = { .function = function->handle.id };
	struct gpc_call call;
	CUresult result = gpc_call_begin(&call, function->scope, GP_CALL_gpHostFunctionDone,
					 gp_args_gpHostFunctionDone_size(&args), 0);

	if (result != CUDA_SUCCESS)
		return result;
	gp_args_gpHostFunctionDone_encode(&call.enc, &args);
	return gpc_call_post(&call, NULL, 0);
}

/* Publishes the function's writes to later work. */
static void
session_publish_writes(struct gpc_session *session)
{
	const struct gpc_session_callbacks *callbacks = atomic_load(&session->callbacks);

	if (callbacks)
		callbacks->after_function(callbacks->arg);
}

/* A function that the daemon refused needs no reply. The ID may be reused by another function once
 * the reply has been posted, not before. */
static void
function_finish(struct gpc_host_function *function)
{
	struct gpc_session *session = function->scope->session;

	if (!function->local && function->result == CUDA_SUCCESS) {
		if (!function->call.library)
			session_publish_writes(session);
		(void)function_post_done(function);
	} else if (!function->local)
		gpc_call_function_refused(session);
	(void)pthread_mutex_lock(&session->functions.lock);
	function_remove_locked(&session->functions, function);
	(void)pthread_mutex_unlock(&session->functions.lock);
	free(function);
}

static struct gpc_host_function *
runner_get_first(struct gpc_host_functions *functions, const struct gpc_host_runner *runner)
{
	struct gpc_host_function *function;

	DL_FOREACH(functions->all, function)
	{
		if (function_get_runner(functions, function) == runner)
			return function;
	}
	return NULL;
}

/* Drops the runner's functions after the end of the session, in the order of posting. The other
 * runner may be inside one of its functions. */
static void
runner_drop_all_locked(struct gpc_session *session, const struct gpc_host_runner *runner)
	GP_LOCKED(session->functions.lock)
{
	struct gpc_host_functions *functions = &session->functions;
	CUresult result = gpc_session_status(session);
	struct gpc_host_function *function;

	while ((function = runner_get_first(functions, runner))) {
		function_remove_locked(&session->functions, function);
		(void)pthread_mutex_unlock(&session->functions.lock);
		/* At the program's exit the functions are not called. */
		if (result != CUDA_ERROR_DEINITIALIZED || function->call.library)
			function_run(function, function->local ? CUDA_SUCCESS : result);
		free(function);
		(void)pthread_mutex_lock(&session->functions.lock);
	}
}

/* Fetches the writes of earlier kernels, so that the function sees them. */
static void
session_fetch_writes(struct gpc_session *session)
{
	const struct gpc_session_callbacks *callbacks = atomic_load(&session->callbacks);

	if (callbacks)
		callbacks->before_function(callbacks->arg);
}

static void
runner_run(struct gpc_session *session, enum gpc_host_runner_kind kind)
{
	struct gpc_host_runner *runner = &session->functions.runners[kind];

	(void)pthread_mutex_lock(&session->functions.lock);
	while (!gpc_session_is_over(session)) {
		struct gpc_host_function *function = runner->due;

		if (!function) {
			(void)pthread_cond_wait(&runner->wanted, &session->functions.lock);
			continue;
		}
		runner->due = function->due_next;
		(void)pthread_mutex_unlock(&session->functions.lock);
		if (kind == GPC_HOST_PROGRAM)
			session_fetch_writes(session);
		function_run(function, function->result);
		function_finish(function);
		(void)pthread_mutex_lock(&session->functions.lock);
	}
	runner_drop_all_locked(session, runner);
	runner->started = false;
	(void)pthread_mutex_unlock(&session->functions.lock);
	gpc_thread_ended(session);
}

static void *
runner_run_program(void *arg)
{
	runner_run(arg, GPC_HOST_PROGRAM);
	return NULL;
}

static void *
runner_run_library(void *arg)
{
	runner_run(arg, GPC_HOST_LIBRARY);
	return NULL;
}

static void
runner_push_locked(struct gpc_host_functions *functions, struct gpc_host_function *function)
	GP_LOCKED(functions->lock)
{
	struct gpc_host_runner *runner = function_get_runner(functions, function);

	function->is_due = true;
	if (runner->due)
		runner->last->due_next = function;
	else
		runner->due = function;
	runner->last = function;
	(void)pthread_cond_signal(&runner->wanted);
}

bool
gpc_host_queue_due(struct gpc_session *session, uint32_t id, CUresult result)
{
	struct gpc_host_function *function;
	bool known;

	(void)pthread_mutex_lock(&session->functions.lock);
	function = gpc_handle_from_id(GPC_KIND_HOST_FUNCTION, id);
	known = function && function->scope->session == session && !function->is_due;
	if (known) {
		function->result = result;
		runner_push_locked(&session->functions, function);
	}
	(void)pthread_mutex_unlock(&session->functions.lock);
	if (known)
		gpc_receiver_note_received(session);
	return known;
}

static int
runner_start_locked(struct gpc_session *session, const struct gpc_host_function *function)
	GP_LOCKED(session->functions.lock)
{
	struct gpc_host_runner *runner = function_get_runner(&session->functions, function);
	bool library = function->call.library;
	int r;

	if (gpc_session_is_over(session))
		return -ESHUTDOWN;
	if (runner->started)
		return 0;
	r = gpc_thread_start(session, library ? runner_run_library : runner_run_program, session,
			     library ? "gpupool-late" : "gpupool-host");
	runner->started = r == 0;
	return r;
}

/* Adds the function to the list and ensures that its thread runs. Afterwards the function may be
 * freed at any time, if the session ends; *id_p is its ID. */
static CUresult
function_add(struct gpc_host_function *function, uint32_t *id_p)
{
	struct gpc_session *session = function->scope->session;
	struct gpc_host_functions *functions = &session->functions;
	int r = gpc_handle_add(GPC_KIND_HOST_FUNCTION, &function->handle);

	if (r != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*id_p = function->handle.id;
	(void)pthread_mutex_lock(&session->functions.lock);
	r = runner_start_locked(session, function);
	if (r == 0) {
		DL_APPEND(functions->all, function);
		if (function->local)
			runner_push_locked(&session->functions, function);
	}
	(void)pthread_mutex_unlock(&session->functions.lock);
	if (r == 0)
		return CUDA_SUCCESS;
	gpc_handle_remove(&function->handle);
	return r == -ESHUTDOWN ? gpc_session_status(session) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Removes a function that could not be posted; if the failure ended the session, the thread may
 * have dropped it already. */
static void
function_cancel(struct gpc_session *session, uint32_t id)
{
	struct gpc_host_function *function;

	(void)pthread_mutex_lock(&session->functions.lock);
	function = gpc_handle_from_id(GPC_KIND_HOST_FUNCTION, id);
	if (function)
		function_remove_locked(&session->functions, function);
	(void)pthread_mutex_unlock(&session->functions.lock);
	free(function);
}

static CUresult
function_post(const struct gpc_scope *scope, const struct gp_args_gpHostFunction *args)
{
	struct gpc_call call;
	CUresult result = gpc_call_begin(&call, scope, GP_CALL_gpHostFunction,
					 gp_args_gpHostFunction_size(args), args->stream);

	if (result != CUDA_SUCCESS)
		return result;
	gp_args_gpHostFunction_encode(&call.enc, args);
	return gpc_call_post(&call, NULL, 0);
}

CUresult
gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
		    const struct gpc_host_call *wanted)
{
	struct gp_args_gpHostFunction args = { .stream = stream };
	struct gpc_host_function *function = calloc(1, sizeof(*function));
	CUresult result;

	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->scope = scope;
	function->call = *wanted;
	result = function_add(function, &args.function);
	if (result != CUDA_SUCCESS) {
		free(function);
		return result;
	}
	gpc_receiver_expect_note(scope->session);
	result = function_post(scope, &args);
	/* Counted after posting, so that a fence in between does not cover the function. */
	(void)gpc_session_work_mark(scope->session);
	if (result != CUDA_SUCCESS) {
		function_cancel(scope->session, args.function);
		gpc_receiver_note_received(scope->session);
	}
	return result;
}

CUresult
gpc_host_queue_run(const struct gpc_scope *scope, CUhostFn wanted, void *data)
{
	struct gpc_host_function *function = calloc(1, sizeof(*function));
	CUresult result;

	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->scope = scope;
	function->call = (struct gpc_host_call){ .function = wanted, .data = data };
	function->local = true;
	result = function_add(function, &(uint32_t){ 0 });
	if (result != CUDA_SUCCESS)
		free(function);
	return result;
}
