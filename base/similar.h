/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean ...?": whether a word is likely to be another one, misspelt.  Pure functions, any
 * thread.
 */
#ifndef GP_SIMILAR_H
#define GP_SIMILAR_H

#include <stdbool.h>

/* In how many places they differ: letters that are missing, too many, others, or in the wrong
 * order, whatever their case.  Of words of up to 31 letters; longer ones count as wholly different.
 */
unsigned int gp_edit_distance(const char *a, const char *b);

/* Whether who wrote the one may have meant the other: they differ in a third of the letters at
 * most. */
bool gp_is_similar(const char *written, const char *meant);

/* Words that are named one by one. */
struct gp_suggestion {
	const char *word; /* that was written */
	const char *best; /* that may have been meant; NULL: none so far */
};

/* One more word that there is. */
void gp_suggestion_consider(struct gp_suggestion *likely, const char *candidate);

/* The one of `count` words that is most like what was written; NULL: none is like it. */
const char *gp_suggest(const char *written, const char *const *words, int count);

#endif /* GP_SIMILAR_H */
