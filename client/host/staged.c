/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/staged.h"

#include "client/context/context.h"
#include "client/host/host_space.h"
#include "client/wire/session.h"

#include <stdatomic.h>

/* Sessions of a process that have such memory; others do without. */
#define SESSIONS 8
/* A program that copies once needs none. */
#define COPIES_WITHOUT 2

struct staged {
	_Atomic(const struct gpc_session *) session;
	atomic_bool busy;
	/* Whoever made it busy: */
	unsigned int copies;
	uint64_t address; /* 0: not yet, or never */
};

static struct staged all[SESSIONS];

static struct staged *
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
is_made(struct staged *staged, struct gpc_context *context)
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

bool
gpc_staged_take(struct gpc_context *context, uint64_t *address_p)
{
	struct gpc_session *session = context->scope.session;
	struct staged *staged = gpc_session_shares_memory(session) ? find(session) : NULL;

	if (!staged || atomic_exchange(&staged->busy, true))
		return false;
	if (is_made(staged, context)) {
		*address_p = staged->address;
		return true;
	}
	atomic_store(&staged->busy, false);
	return false;
}

void
gpc_staged_give(uint64_t address)
{
	for (int i = 0; i < SESSIONS; i++) {
		if (all[i].address == address)
			atomic_store(&all[i].busy, false);
	}
}
