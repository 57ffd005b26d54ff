/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/late_copy.h"

#include "base/lock.h"
#include "client/guard/guard.h"
#include "client/session/host_queue.h"
#include "client/session/session.h"
#include "protocol/control.h"

#include <pthread.h>
#include <stdatomic.h>
#include <utlist.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t removed;
GP_COND_CONSTRUCTOR(removed);
static struct gpc_late_copy *late_copies GP_GUARDED_BY(lock);
static atomic_uint count;

bool
gpc_late_copy_is_known(const struct gpc_session *session)
{
	return gpc_session_facts(session)->features & GP_FEATURE_LATE;
}

static uint64_t
late_copy_add(struct gpc_late_copy *late)
{
	static uint64_t last_number;
	uint64_t number;

	(void)pthread_mutex_lock(&lock);
	number = late->number = ++last_number;
	DL_APPEND(late_copies, late);
	atomic_fetch_add(&count, 1);
	(void)pthread_mutex_unlock(&lock);
	return number;
}

/* Does nothing if the copy has already been removed, as the end of a session does. */
static void
late_copy_remove(uint64_t number)
{
	struct gpc_late_copy *late;

	(void)pthread_mutex_lock(&lock);
	DL_SEARCH_SCALAR(late_copies, late, number, number);
	if (late) {
		DL_DELETE(late_copies, late);
		atomic_fetch_sub(&count, 1);
		(void)pthread_cond_broadcast(&removed);
	}
	(void)pthread_mutex_unlock(&lock);
	if (late)
		late->destroy(late);
}

/* result: CUDA_SUCCESS when the stream has reached the copy, otherwise the reason why the session
 * is over. */
static void
late_copy_run(CUstream stream, CUresult result, void *data)
{
	struct gpc_late_copy *late = data;

	if (result == CUDA_SUCCESS) {
		gpc_call_passes = true;
		result = late->send(late);
		gpc_call_passes = false;
		if (result != CUDA_SUCCESS)
			gpc_session_defer(late->session, result);
	}
	late_copy_remove(late->number);
}

CUresult
gpc_late_copy_post(const struct gpc_scope *scope, uint32_t stream, struct gpc_late_copy *late)
{
	const struct gpc_host_call call = {
		.callback = late_copy_run,
		.data = late,
		.library = true,
	};
	uint64_t number;
	CUresult result;

	number = late_copy_add(late);
	result = gpc_host_queue_post(scope, stream, &call);
	/* The session may have ended in the meantime, and destroyed the copy. */
	if (result != CUDA_SUCCESS)
		late_copy_remove(number);
	return result;
}

static bool
late_copies_use(uintptr_t base, uint64_t size) GP_LOCKED(lock)
{
	const struct gpc_late_copy *late;

	DL_FOREACH(late_copies, late)
	{
		if (((late->start < base + size && base < late->end) ||
		     (late->start_to < base + size && base < late->end_to)) &&
		    !gpc_session_is_abandoned(late->session))
			return true;
	}
	return false;
}

void
gpc_late_copy_settle(const void *base, uint64_t size)
{
	if (atomic_load(&count) == 0)
		return;
	gpc_guard_block();
	(void)pthread_mutex_lock(&lock);
	while (late_copies_use((uintptr_t)base, size))
		(void)pthread_cond_wait(&removed, &lock);
	(void)pthread_mutex_unlock(&lock);
}
