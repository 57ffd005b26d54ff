/* SPDX-License-Identifier: Apache-2.0 */
#include "base/edit_distance.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define LENGTH_MAX 31

static unsigned int
min_of_three(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int fewer = a < b ? a : b;

	return fewer < c ? fewer : c;
}

static bool
letters_are_equal(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned int
gp_edit_distance(const char *a, const char *b)
{
	size_t a_size = strlen(a), b_size = strlen(b);
	unsigned int rows[LENGTH_MAX + 1][LENGTH_MAX + 1];

	if (a_size > LENGTH_MAX || b_size > LENGTH_MAX)
		return (unsigned int)(a_size > b_size ? a_size : b_size);
	for (unsigned int i = 0; i <= a_size; i++) {
		for (unsigned int k = 0; k <= b_size; k++) {
			if (i == 0 || k == 0) {
				rows[i][k] = i + k;
				continue;
			}
			rows[i][k] = min_of_three(rows[i - 1][k] + 1, rows[i][k - 1] + 1,
						  rows[i - 1][k - 1] +
							  !letters_are_equal(a[i - 1], b[k - 1]));
			if (i > 1 && k > 1 && letters_are_equal(a[i - 1], b[k - 2]) &&
			    letters_are_equal(a[i - 2], b[k - 1]) &&
			    rows[i - 2][k - 2] + 1 < rows[i][k])
				rows[i][k] = rows[i - 2][k - 2] + 1;
		}
	}
	return rows[a_size][b_size];
}

bool
gp_is_similar(const char *written, const char *meant)
{
	return gp_edit_distance(written, meant) <= (strlen(meant) + 1) / 3;
}

void
gp_suggestion_consider(struct gp_suggestion *likely, const char *candidate)
{
	if (gp_is_similar(likely->word, candidate) &&
	    (!likely->best || gp_edit_distance(likely->word, candidate) <
				      gp_edit_distance(likely->word, likely->best)))
		likely->best = candidate;
}

const char *
gp_suggest(const char *written, const char *const *words, int count)
{
	struct gp_suggestion likely = { .word = written };

	for (int i = 0; i < count; i++)
		gp_suggestion_consider(&likely, words[i]);
	return likely.best;
}
