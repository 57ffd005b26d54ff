/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/similar.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LENGTH_MAX 64

static bool
same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Letters to add, to leave out, to exchange, or to swap with their neighbours. */
static unsigned int
distance_of(const char *a, const char *b)
{
	static const unsigned int far = LENGTH_MAX;
	unsigned int rows[3][LENGTH_MAX + 1];
	size_t length_a = strlen(a), length_b = strlen(b);

	if (length_a > LENGTH_MAX || length_b > LENGTH_MAX)
		return far;
	for (size_t k = 0; k <= length_b; k++)
		rows[0][k] = (unsigned int)k;
	for (size_t i = 1; i <= length_a; i++) {
		const unsigned int *before = rows[(i - 1) % 3], *earlier = rows[(i + 1) % 3];
		unsigned int *row = rows[i % 3];

		row[0] = (unsigned int)i;
		for (size_t k = 1; k <= length_b; k++) {
			unsigned int least = before[k - 1] + !same(a[i - 1], b[k - 1]);

			if (before[k] + 1 < least)
				least = before[k] + 1;
			if (row[k - 1] + 1 < least)
				least = row[k - 1] + 1;
			if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) &&
			    same(a[i - 2], b[k - 1]) && earlier[k - 2] + 1 < least)
				least = earlier[k - 2] + 1;
			row[k] = least;
		}
	}
	return rows[length_a % 3][length_b];
}

void
gpd_similar_try(struct gpd_similar *similar, const char *candidate)
{
	unsigned int distance = distance_of(similar->word, candidate);
	/* A word of three letters with one of them wrong, one of nine with three. */
	bool near = distance <= (strlen(similar->word) + 2) / 4 + (strlen(similar->word) > 2);

	if (!near || (similar->best && distance >= similar->distance))
		return;
	similar->best = candidate;
	similar->distance = distance;
}
