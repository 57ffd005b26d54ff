/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/answers.h"

#include "client/code/image.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <uthash.h>

struct gpc_answer {
	struct gpc_question question;
	uint64_t answer;
	UT_hash_handle hh;
};

static void
clear(struct gpc_answers *answers)
{
	struct gpc_answer *answer, *next;

	HASH_ITER(hh, answers->table, answer, next)
	{
		HASH_DEL(answers->table, answer);
		free(answer);
	}
}

/* Under the image's lock. */
static uint64_t
revision_of(const struct gpc_image *image)
{
	return gpc_session_revision(image->device->session) + image->answers.changes;
}

static struct gpc_answer *
find(struct gpc_answers *answers, const struct gpc_question *question)
{
	struct gpc_answer *answer;

	HASH_FIND(hh, answers->table, question, sizeof(*question), answer);
	return answer;
}

bool
gpc_answers_watch(struct gpc_context *context)
{
	const struct gp_args_gpShareWatch args = { 0 };
	struct gpc_session *session = context->scope.session;

	if (gpc_session_is_watched(session))
		return true;
	/* Twice does no harm; and nobody believes that it is posted before it is. */
	if (gpc_post_gpShareWatch(context, &args) != CUDA_SUCCESS)
		return false;
	gpc_session_set_watched(session);
	return true;
}

bool
gpc_answers_find(struct gpc_image *image, const struct gpc_question *question, uint64_t *answer_p,
		 uint64_t *revision_p)
{
	struct gpc_answers *answers = &image->answers;
	struct gpc_answer *answer = NULL;

	(void)pthread_mutex_lock(&image->lock);
	*revision_p = revision_of(image);
	if (answers->revision == *revision_p)
		answer = find(answers, question);
	if (answer)
		*answer_p = answer->answer;
	(void)pthread_mutex_unlock(&image->lock);
	return answer != NULL;
}

/* NULL: out of memory. */
static struct gpc_answer *
add(struct gpc_answers *answers, const struct gpc_question *question)
{
	struct gpc_answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	if (HASH_COUNT(answers->table) >= GPC_ANSWERS_MAX)
		clear(answers);
	answer->question = *question;
	HASH_ADD(hh, answers->table, question, sizeof(answer->question), answer);
	return answer;
}

void
gpc_answers_keep(struct gpc_image *image, const struct gpc_question *question, uint64_t value,
		 uint64_t revision)
{
	struct gpc_answers *answers = &image->answers;
	struct gpc_answer *answer;

	(void)pthread_mutex_lock(&image->lock);
	if (revision == revision_of(image)) {
		if (answers->revision != revision)
			clear(answers);
		answers->revision = revision;
		answer = find(answers, question);
		if (!answer)
			answer = add(answers, question);
		if (answer)
			answer->answer = value;
	}
	(void)pthread_mutex_unlock(&image->lock);
}

void
gpc_answers_forget(struct gpc_image *image)
{
	(void)pthread_mutex_lock(&image->lock);
	image->answers.changes++;
	(void)pthread_mutex_unlock(&image->lock);
}

void
gpc_answers_fini(struct gpc_answers *answers)
{
	clear(answers);
}
