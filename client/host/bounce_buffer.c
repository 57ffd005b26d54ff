/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/bounce_buffer.h"

#include "client/context/context.h"
#include "client/host/host_space.h"
#include "client/session/session.h"

#include <stdbool.h>

/* Maximum number of sessions with a buffer; others work without. */
#define SESSIONS 8
/* Number of copies without a buffer, as a program that copies once needs none. */
#define COPIES_WITHOUT 2

static struct gpc_bounce_buffer buffers[SESSIONS];

static struct gpc_bounce_buffer *
buffer_find(const struct gpc_session *session)
{
	for (int i = 0; i < SESSIONS; i++) {
		const struct gpc_session *owner = NULL;

		if (atomic_compare_exchange_strong(&buffers[i].session, &owner, session) ||
		    owner == session)
			return &buffers[i];
	}
	return NULL;
}

/* Returns whether the buffer has memory. The allocation is tried once. */
static bool
buffer_is_allocated(struct gpc_bounce_buffer *buffer, struct gpc_context *context)
{
	bool shared;

	if (buffer->copies > COPIES_WITHOUT)
		return buffer->address != 0;
	if (buffer->copies++ < COPIES_WITHOUT)
		return false;
	if (gpc_host_space_alloc(context, GPC_BOUNCE_BUFFER_SIZE, &buffer->address, &shared) !=
	    CUDA_SUCCESS)
		buffer->address = 0;
	return buffer->address != 0;
}

struct gpc_bounce_buffer *
gpc_bounce_buffer_acquire(struct gpc_context *context)
{
	struct gpc_session *session = context->scope.session;
	struct gpc_bounce_buffer *buffer =
		gpc_session_shares_memory(session) ? buffer_find(session) : NULL;

	if (!buffer || atomic_exchange(&buffer->busy, true))
		return NULL;
	if (buffer_is_allocated(buffer, context))
		return buffer;
	gpc_bounce_buffer_release(buffer);
	return NULL;
}

void
gpc_bounce_buffer_release(struct gpc_bounce_buffer *buffer)
{
	atomic_store(&buffer->busy, false);
}
