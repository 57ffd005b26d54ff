/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/staged.h"

#include "client/context/context.h"
#include "client/host/host_space.h"
#include "client/wire/session.h"

#include <stdbool.h>

/* Sessions of a process that have such memory; others do without. */
#define SESSIONS 8
/* A program that copies once needs none. */
#define COPIES_WITHOUT 2

static struct gpc_staged all[SESSIONS];

static struct gpc_staged *
find(const struct gpc_session *session)
{
	for (int i = 0; i < SESSIONS; i++) {
		const struct gpc_session *owner = NULL;

		if (atomic_compare_exchange_strong(&all[i].session, &owner, session) ||
		    owner == session)
			return &all[i];
	}
	return NULL;
}

/* Whether it has its memory.  It is tried once. */
static bool
is_made(struct gpc_staged *staged, struct gpc_context *context)
{
	bool shared;

	if (staged->copies > COPIES_WITHOUT)
		return staged->address != 0;
	if (staged->copies++ < COPIES_WITHOUT)
		return false;
	if (gpc_host_space_alloc(context, GPC_STAGED_SIZE, &staged->address, &shared) !=
	    CUDA_SUCCESS)
		staged->address = 0;
	return staged->address != 0;
}

struct gpc_staged *
gpc_staged_take(struct gpc_context *context)
{
	struct gpc_session *session = context->scope.session;
	struct gpc_staged *staged = gpc_session_shares_memory(session) ? find(session) : NULL;

	if (!staged || atomic_exchange(&staged->busy, true))
		return NULL;
	if (is_made(staged, context))
		return staged;
	gpc_staged_give(staged);
	return NULL;
}

void
gpc_staged_give(struct gpc_staged *staged)
{
	atomic_store(&staged->busy, false);
}
