/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spelling suggestions ("did you mean ...?") for misspelled words of the command line and of
 * configuration files.
 *
 * Ownership: words are NUL-terminated and borrowed. A returned suggestion is one of the candidates
 * that the caller passed and is valid as long as that candidate.
 * Threads: any; pure functions.
 * Errors: none.
 */
#ifndef GP_EDIT_DISTANCE_H
#define GP_EDIT_DISTANCE_H

#include <stdbool.h>

/* Returns the edit distance of two words: the number of letters inserted, deleted, replaced or
 * swapped with a neighbor, ignoring case. If a word has more than 31 letters, returns the length of
 * the longer word. */
unsigned int gp_edit_distance(const char *a, const char *b);

/* Returns whether `written` may be a misspelling of `meant`: their edit distance is at most a third
 * of the length of `meant`, rounded to the nearest integer. */
bool gp_is_similar(const char *written, const char *meant);

/* Search for the best suggestion among candidates that are presented one after another. The caller
 * sets `word` and clears `best`, then calls gp_suggestion_consider() with each candidate. */
struct gp_suggestion {
	const char *word; /* the misspelled word */
	const char *best; /* the closest candidate so far; NULL: none was similar */
};

/* Makes the candidate likely->best if it is similar to likely->word (gp_is_similar()) and closer to
 * it than likely->best so far. likely: the search. */
void gp_suggestion_consider(struct gp_suggestion *likely, const char *candidate);

/* Returns the word of the list of `count` words that is closest to `written`, the first of equally
 * close words, or NULL if none is similar. */
const char *gp_suggest(const char *written, const char *const *words, int count);

#endif /* GP_EDIT_DISTANCE_H */
