/* SPDX-License-Identifier: Apache-2.0 */
/* While work is under way changes go both ways: the client looks again and again at what the
 * program has changed, and asks the daemon to tell what the device has. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/base/handle.h"
#include "client/base/stats.h"
#include "client/connect/facts.h"
#include "client/context/context.h"
#include "client/host/mirror.h"
#include "client/host/mirror_state.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Between two exchanges: so long, and so many times as long as looking takes. */
#define PAUSE_NS UINT64_C(70000)
#define PAUSE_FACTOR 3
/* Questions that are on their way at once, over a slow link. */
#define QUESTIONS_MAX 64

/* Until there is work under way, or the session is over: then false. */
static bool
await_work(struct gpc_mirror *mirror)
{
	bool over;

	(void)pthread_mutex_lock(&mirror->lock);
	for (;;) {
		/* Who posts work looks at this behind it. */
		atomic_store(&mirror->sleeps, true);
		over = mirror->over;
		if (over || mirror->publish_number ||
		    (mirror->blocks &&
		     atomic_load(&mirror->clean) < gpc_session_given(mirror->session)))
			break;
		(void)pthread_cond_wait(&mirror->wanted, &mirror->lock);
	}
	atomic_store(&mirror->sleeps, false);
	(void)pthread_mutex_unlock(&mirror->lock);
	return !over;
}

/* Questions that are on their way, the oldest first; the thread's. */
struct questions {
	struct gpc_mirror_fetch *list[QUESTIONS_MAX];
	unsigned int first, count;
	unsigned int held; /* so many may be held: more where there is often something to tell */
};

static bool
may_be_held(const struct gpc_mirror *mirror)
{
	return gpc_facts_know(gpc_session_facts(mirror->session), GP_CALL_gpHostTakeChanged);
}

/* Over a link on which an answer takes long many are on their way, one behind the other; but no
 * more than that, or they would wait for the daemon. */
static unsigned int
most_questions(struct gpc_mirror *mirror, const struct questions *questions)
{
	uint64_t most;

	(void)pthread_mutex_lock(&mirror->lock);
	most = 1 + mirror->least_ns / PAUSE_NS;
	(void)pthread_mutex_unlock(&mirror->lock);
	return most < questions->held ? (unsigned int)most : questions->held;
}

static CUresult
ask(struct gpc_mirror *mirror, enum gpc_mirror_when when, struct questions *questions)
{
	struct gpc_mirror_fetch *fetch = calloc(1, sizeof(*fetch));
	struct gpc_mirror_way way = { 0 };
	CUresult result;

	if (!fetch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fetch->when = when;
	result = gpc_mirror_start_fetch(mirror, fetch, &way);
	if (result != CUDA_SUCCESS || fetch->asked == 0) {
		free(fetch);
		return result;
	}
	questions->list[(questions->first + questions->count++) % QUESTIONS_MAX] = fetch;
	return CUDA_SUCCESS;
}

static uint64_t
bytes_of(struct gpc_mirror *mirror)
{
	uint64_t size;

	(void)pthread_mutex_lock(&mirror->lock);
	size = mirror->size;
	(void)pthread_mutex_unlock(&mirror->lock);
	return size;
}

/* Whether the last of them names other blocks than there are now. */
static bool
is_old(struct gpc_mirror *mirror, const struct questions *questions)
{
	unsigned int last = questions->first + questions->count - 1;
	bool old;

	if (questions->count == 0)
		return false;
	(void)pthread_mutex_lock(&mirror->lock);
	old = questions->list[last % QUESTIONS_MAX]->revision != mirror->revision;
	(void)pthread_mutex_unlock(&mirror->lock);
	return old;
}

/* What is asked now ends what the daemon holds: so where there are other blocks than it knows.
 * Where that is too much to be held the client asks again and again. */
static CUresult
ask_again(struct gpc_mirror *mirror, struct questions *questions)
{
	unsigned int before = questions->count;
	CUresult result;

	if (!may_be_held(mirror) || is_old(mirror, questions))
		return ask(mirror, GPC_MIRROR_NOW, questions);
	result = ask(mirror, GPC_MIRROR_CHANGED, questions);
	if (result == CUDA_SUCCESS && questions->count == before) {
		questions->held = QUESTIONS_MAX;
		result = ask(mirror, GPC_MIRROR_NOW, questions);
	}
	return result;
}

/* The oldest one; whether there is more than it has told. */
static CUresult
take_oldest(struct questions *questions, bool *more)
{
	struct gpc_mirror_fetch *fetch = questions->list[questions->first];
	CUresult result = gpc_mirror_end_fetch(fetch, GP_PICTURE_ALL);

	if (fetch->last && questions->held < QUESTIONS_MAX)
		questions->held *= 2;
	*more |= fetch->done < fetch->asked || fetch->asked < bytes_of(fetch->mirror);
	free(fetch);
	questions->first = (questions->first + 1) % QUESTIONS_MAX;
	questions->count--;
	return result;
}

/* Sends what the program has changed, and tells the daemon so if it waits for that. */
static CUresult
publish(struct gpc_mirror *mirror)
{
	struct gp_args_gpHostPublish args = { 0 };
	CUresult result;

	(void)pthread_mutex_lock(&mirror->lock);
	args.number = mirror->publish_number;
	mirror->publish_number = 0;
	(void)pthread_mutex_unlock(&mirror->lock);
	result = gpc_mirror_send(mirror->session);
	return result == CUDA_SUCCESS && args.number
		       ? gpc_post_gpHostPublish(mirror->primary, &args)
		       : result;
}

/* Changes go both ways, without a wait for the answer of this time. */
static CUresult
exchange(struct gpc_mirror *mirror, struct questions *questions)
{
	CUresult result = publish(mirror);
	bool more = false;

	while (result == CUDA_SUCCESS && questions->count > 0 &&
	       gpc_request_poll(&questions->list[questions->first]->request))
		result = take_oldest(questions, &more);
	if (result == CUDA_SUCCESS && more)
		return gpc_mirror_fetch_all(mirror);
	if (result == CUDA_SUCCESS &&
	    (questions->count < most_questions(mirror, questions) ||
	     (questions->count < QUESTIONS_MAX && is_old(mirror, questions))))
		result = ask_again(mirror, questions);
	return result;
}

static CUresult
end_exchange(struct questions *questions)
{
	CUresult result = CUDA_SUCCESS;
	bool more = false;

	while (questions->count > 0) {
		CUresult one = take_oldest(questions, &more);

		result = result == CUDA_SUCCESS ? one : result;
	}
	return result;
}

/* So nobody asks for it again. */
static void
set_context_clean(void *object, void *arg)
{
	struct gpc_context *context = object;
	const struct gpc_mirror *mirror = arg;

	if (context->scope.session == mirror->session)
		gpc_raise(&context->done, atomic_load(&mirror->clean));
}

static void
set_clean(struct gpc_mirror *mirror, uint64_t given)
{
	atomic_store(&mirror->clean, given);
	gpc_handle_each(GPC_KIND_CONTEXT, set_context_clean, mirror);
}

/* Changes go both ways until all that has been given by now is done. */
static void
exchange_until_done(struct gpc_mirror *mirror)
{
	const struct gp_args_gpFence args = { 0 };
	struct gpc_request fence = { .session = mirror->session };
	uint64_t given = gpc_session_given(mirror->session);
	struct questions questions = { .held = may_be_held(mirror) ? 1 : QUESTIONS_MAX };
	CUresult result = CUDA_SUCCESS;
	bool done = false;

	if (gpc_start_gpFence(mirror->primary, &args, &fence) != CUDA_SUCCESS)
		return;
	while (!done && gpc_session_status(mirror->session) == CUDA_SUCCESS) {
		uint64_t begin = gp_worked_ns(), took;

		done = gpc_request_poll(&fence);
		result = exchange(mirror, &questions);
		took = (gp_worked_ns() - begin) * PAUSE_FACTOR;
		if (!done)
			gp_nap(took > PAUSE_NS ? took : PAUSE_NS);
	}
	/* What is outstanding is completed with the session's end. */
	(void)gpc_request_wait_own(&fence);
	free(fence.reply);
	if (done && result == CUDA_SUCCESS && fence.result == CUDA_SUCCESS)
		result = gpc_mirror_fetch_all(mirror);
	else
		result = CUDA_ERROR_UNKNOWN;
	/* The daemon holds none any more. */
	if (end_exchange(&questions) == CUDA_SUCCESS && result == CUDA_SUCCESS)
		set_clean(mirror, given);
}

void *
gpc_mirror_run(void *arg)
{
	struct gpc_mirror *mirror = arg;

	gpc_stats_thread_is_own();
	while (await_work(mirror))
		exchange_until_done(mirror);
	gpc_thread_ended(mirror->session);
	return NULL;
}
