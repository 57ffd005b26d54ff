/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What partition.c, which makes partitions, and partition_share.c, which chooses them, share: the
 * groups of each device and the partitions of it that there are.  All of it is under one lock, but
 * for a partition's green context, which has its own.
 */
#ifndef GPD_PARTITION_TABLE_H
#define GPD_PARTITION_TABLE_H

#include "base/lock.h"
#include "server/worker/device/partition.h"

#include <pthread.h>

#define GPD_GROUPS_MAX 256

/* A set of groups. */
struct gpd_groups {
	uint64_t bits[GPD_GROUPS_MAX / 64];
};

static inline bool
gpd_groups_has(const struct gpd_groups *set, unsigned int i)
{
	return set->bits[i / 64] >> i % 64 & 1;
}

static inline void
gpd_groups_add(struct gpd_groups *set, unsigned int i)
{
	set->bits[i / 64] |= (uint64_t)1 << i % 64;
}

struct gpd_partition {
	struct gpd_partition *next; /* of the device */
	int device;
	struct gpd_groups set;
	uint32_t groups;
	unsigned int refs;
	pthread_mutex_t lock; /* no two threads may use a green context at a time */
	CUgreenCtx green;     /* made with the first stream; read without the lock */
	_Atomic bool coming;  /* a thread makes it */

	/* It is of a split of another one, not of groups of the table. */
	bool is_part;
	struct gpd_partition *base; /* a reference, or NULL: the whole device */
	struct gpd_split split;
	bool lenient;
};

struct gpd_partition_table {
	unsigned int granularity; /* as it was wanted last */
	unsigned int group_size;
	unsigned int count;
	CUdevResource groups[GPD_GROUPS_MAX];
	struct gpd_partition *partitions; /* of those without references, the oldest comes first */
	unsigned int idle;                /* have none */
};

extern pthread_mutex_t gpd_partition_lock;
/* NULL: the device cannot be divided. */
extern struct gpd_partition_table *gpd_partition_tables[GPD_PARTITION_DEVICES];

/* The one of this set, with a new reference; NULL: no memory. */
struct gpd_partition *gpd_partition_find_or_create(int device, const struct gpd_groups *set,
						   uint32_t groups) GP_LOCKED(gpd_partition_lock);
/* NULL is allowed. */
struct gpd_partition *gpd_partition_ref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
/* What has to be destroyed once that is released, or NULL. */
struct gpd_partition *gpd_partition_unref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
void gpd_partition_destroy(struct gpd_partition *partition);

/* Of a partition that is a part: what the driver splits the base into. */
CUresult gpd_part_collect(const struct gpd_partition *partition, const _Atomic bool *given_up,
			  CUdevResource *resources, unsigned int *count);

#endif /* GPD_PARTITION_TABLE_H */
