/* SPDX-License-Identifier: Apache-2.0 */
#include "base/similar.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define LETTERS_MAX 31

static unsigned int
least(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int fewer = a < b ? a : b;

	return fewer < c ? fewer : c;
}

static bool
same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned int
gp_distance(const char *a, const char *b)
{
	size_t a_size = strlen(a), b_size = strlen(b);
	unsigned int rows[LETTERS_MAX + 1][LETTERS_MAX + 1];

	if (a_size > LETTERS_MAX || b_size > LETTERS_MAX)
		return (unsigned int)(a_size > b_size ? a_size : b_size);
	for (unsigned int i = 0; i <= a_size; i++) {
		for (unsigned int k = 0; k <= b_size; k++) {
			if (i == 0 || k == 0) {
				rows[i][k] = i + k;
				continue;
			}
			rows[i][k] = least(rows[i - 1][k] + 1, rows[i][k - 1] + 1,
					   rows[i - 1][k - 1] + !same(a[i - 1], b[k - 1]));
			if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) &&
			    same(a[i - 2], b[k - 1]) && rows[i - 2][k - 2] + 1 < rows[i][k])
				rows[i][k] = rows[i - 2][k - 2] + 1;
		}
	}
	return rows[a_size][b_size];
}

bool
gp_similar(const char *written, const char *meant)
{
	return gp_distance(written, meant) <= (strlen(meant) + 1) / 3;
}

void
gp_likely_try(struct gp_likely *likely, const char *candidate)
{
	if (gp_similar(likely->word, candidate) &&
	    (!likely->best ||
	     gp_distance(likely->word, candidate) < gp_distance(likely->word, likely->best)))
		likely->best = candidate;
}

const char *
gp_most_similar(const char *written, const char *const *words, int count)
{
	struct gp_likely likely = { .word = written };

	for (int i = 0; i < count; i++)
		gp_likely_try(&likely, words[i]);
	return likely.best;
}
