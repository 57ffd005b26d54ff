/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spelling suggestions ("did you mean ...?") for misspelled words of the command line and of
 * configuration files.
 *
 * Ownership: words are borrowed from the caller.
 * Threads: any; pure functions.
 */
#ifndef GP_EDIT_DISTANCE_H
#define GP_EDIT_DISTANCE_H

#include <stdbool.h>

/* Returns the edit distance of two words: the number of letters inserted, deleted, replaced or
 * swapped with a neighbor, ignoring case. If a word has more than 31 letters, returns the length of
 * the longer word. */
unsigned int gp_edit_distance(const char *a, const char *b);

/* Whether `written` may be a misspelling of `meant`: the edit distance is at most a third of the
 * length of `meant`, rounded. */
bool gp_is_similar(const char *written, const char *meant);

/* Search for the best suggestion among candidates that are presented in turn. */
struct gp_suggestion {
	const char *word; /* the misspelled word */
	const char *best; /* the best candidate so far; NULL: none is similar */
};

/* Makes the candidate the best one if it is similar to the word and closer than the best so far. */
void gp_suggestion_consider(struct gp_suggestion *likely, const char *candidate);

/* Returns the word of the list that is closest to `written`, or NULL if none is similar. */
const char *gp_suggest(const char *written, const char *const *words, int count);

#endif /* GP_EDIT_DISTANCE_H */
