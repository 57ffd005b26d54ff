/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon has answered about the kernels of an image, so that a question is asked once: how
 * many blocks fit, and whether a launch of that shape is accepted.
 *
 * What an answer hangs on is part of its question, but for the session's share of the GPU and the
 * preferred cache: these change the revision, and all answers before are forgotten.  The image owns
 * them.  Any thread may call.
 */
#ifndef GPC_ANSWERS_H
#define GPC_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#define GPC_ANSWERS_MAX 4096 /* of an image; then it begins anew */

enum gpc_question_what {
	GPC_QUESTION_LAUNCH = 1, /* answer: the most blocks that were accepted */
	GPC_QUESTION_BLOCKS,
	GPC_QUESTION_SHARED,
	GPC_QUESTION_CLUSTERS, /* and the next one: what of gpOccupancyCluster */
	GPC_QUESTION_MULTIPROCESSORS = GPC_QUESTION_CLUSTERS + 2, /* of no kernel */
};

#define GPC_QUESTION_WORDS 16
#define GPC_QUESTION_CLUSTER 4 /* of a shape, where the cluster stands, and the grid */
#define GPC_QUESTION_GRID 12   /* and behind it the carveout */
#define GPC_QUESTION_SETTINGS 8

/* Compared byte by byte: what is not used is zero. */
struct gpc_question {
	uint32_t what;
	uint32_t kernel; /* index in the image */
	int32_t device;
	uint32_t settings_known;                 /* bit i: settings[i] is known */
	int32_t settings[GPC_QUESTION_SETTINGS]; /* of the kernel: CUfunction_attribute 8 … 15 */
	uint32_t words[GPC_QUESTION_WORDS];      /* what else was asked */
};

struct gpc_answer;
struct gpc_context;
struct gpc_image;

struct gpc_answers {
	struct gpc_answer *table;
	uint64_t revision; /* at which they were given */
	uint64_t changes;  /* of the preferred cache */
};

/* Before a question whose answer hangs on the session's share: sees to being told when that
 * changes. false: the daemon cannot, so the answer is not to be kept. */
bool gpc_answers_watch(struct gpc_context *context);

/* Whether there is an answer.  Otherwise *revision_p is to be taken before the daemon is asked. */
bool gpc_answers_find(struct gpc_image *image, const struct gpc_question *question,
		      uint64_t *answer_p, uint64_t *revision_p);
/* Keeps it, unless it may be out of date already; replaces another. */
void gpc_answers_keep(struct gpc_image *image, const struct gpc_question *question, uint64_t answer,
		      uint64_t revision);
/* They are not true any more. */
void gpc_answers_forget(struct gpc_image *image);
/* Nobody uses the image. */
void gpc_answers_fini(struct gpc_answers *answers);

#endif /* GPC_ANSWERS_H */
