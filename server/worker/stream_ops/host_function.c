/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream_ops/host_function.h"

#include "gpd_calls.h"
#include "server/worker/session/handle.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <stdatomic.h>
#include <stdlib.h>

struct function {
	struct gpd_handle handle;
	struct gpd_deferred_entry *entry; /* its record in the deferred queue */
	_Atomic bool notified;            /* the client may report its end */
};

static void
host_function_notify(struct gpd_session *session, void *arg, CUresult result)
{
	struct function *function = arg;
	uint32_t id = function->handle.id;

	/* The client knows that the session is over and handles its functions itself. */
	if (result != CUDA_SUCCESS)
		return;
	/* After this the client may report its end, and the function may be freed. */
	atomic_store(&function->notified, true);
	(void)gpd_session_send_note(session, GP_NOTE_FUNCTION, id, CUDA_SUCCESS);
}

static CUresult
host_function_enqueue(struct gpd_session *session, const struct gp_args_gpHostFunction *args)
{
	struct gpd_stream *stream;
	CUresult result;
	struct function *function = gpd_session_create_object(
		session, GPD_KIND_HOST_FUNCTION, args->function, sizeof(*function), &result);

	if (!function)
		return result;
	function->entry = session->current.entry;
	result = gpd_stream_begin(session, args->stream, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_wait_add(session, stream, host_function_notify, function);
	if (result == CUDA_SUCCESS) {
		session->current.entry = NULL;
	} else {
		gpd_handle_remove(&session->handles, &function->handle);
		free(function);
	}
	return result;
}

CUresult
gpd_gpHostFunction(struct gpd_session *session, const struct gp_args_gpHostFunction *args)
{
	CUresult result = host_function_enqueue(session, args);

	/* Otherwise the client would wait for it forever. */
	if (result != CUDA_SUCCESS)
		(void)gpd_session_send_note(session, GP_NOTE_FUNCTION, args->function,
					    (uint32_t)result);
	return result;
}

CUresult
gpd_gpHostFunctionDone(struct gpd_session *session, const struct gp_args_gpHostFunctionDone *args)
{
	struct function *function =
		gpd_handle_get(&session->handles, GPD_KIND_HOST_FUNCTION, args->function);

	if (!function || !atomic_load(&function->notified))
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_deferred_remove(session, function->entry);
	gpd_handle_remove(&session->handles, &function->handle);
	free(function);
	return CUDA_SUCCESS;
}

void
gpd_host_functions_destroy(struct gpd_session *session)
{
	struct function *function;
	uint32_t at = 0;

	while ((function = gpd_handle_next(&session->handles, GPD_KIND_HOST_FUNCTION, &at))) {
		gpd_handle_remove(&session->handles, &function->handle);
		free(function);
	}
	gpd_deferred_destroy(session);
}
