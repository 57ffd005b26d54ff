/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody may have meant: of words that there are, the one that is nearest to a word that is
 * none of them.  Values only; any thread.
 */
#ifndef GPD_SIMILAR_H
#define GPD_SIMILAR_H

struct gpd_similar {
	const char *word; /* that was said */
	const char *best; /* that may have been meant; NULL: none so far */
	unsigned int distance;
};

/* One more word that there is. */
void gpd_similar_try(struct gpd_similar *similar, const char *candidate);

#endif /* GPD_SIMILAR_H */
