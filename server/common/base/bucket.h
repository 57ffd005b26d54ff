/* SPDX-License-Identifier: Apache-2.0 */
/* A limit for what somebody may have: so many at once, and one more for each of some time.  Pure
 * functions of values; the owner's thread. */
#ifndef GPD_BUCKET_H
#define GPD_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct gpd_bucket {
	unsigned int used;
	int64_t since_ms; /* what is used is given back from here on */
};

static inline void
gpd_bucket_give_back(struct gpd_bucket *bucket, int64_t each_ms, int64_t now_ms)
{
	int64_t back = bucket->used ? (now_ms - bucket->since_ms) / each_ms : 0;

	if (back >= bucket->used)
		*bucket = (struct gpd_bucket){ .since_ms = now_ms };
	bucket->used -= bucket->used ? (unsigned int)back : 0;
	bucket->since_ms += bucket->used ? back * each_ms : 0;
}

/* False: there is none left. */
static inline bool
gpd_bucket_use(struct gpd_bucket *bucket, unsigned int size, int64_t each_ms, int64_t now_ms)
{
	gpd_bucket_give_back(bucket, each_ms, now_ms);
	if (bucket->used >= size)
		return false;
	bucket->used++;
	return true;
}

#endif /* GPD_BUCKET_H */
