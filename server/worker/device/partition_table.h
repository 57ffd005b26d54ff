/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal table of partitions, shared by partition.c, which creates them, partition_assign.c,
 * which assigns them, and partition_part.c: the groups of each device and its partitions.
 *
 * Ownership: the table owns its partitions; those that are parts belong to their references alone.
 * Threads: gpd_partition_lock protects everything except the creation and use of a partition's
 * green context, which has the partition's own lock.
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
	struct gpd_partition *next; /* list of the device */
	int device;
	struct gpd_groups set;
	uint32_t groups;
	unsigned int refs;
	pthread_mutex_t lock; /* the driver does not allow two threads in one green context */
	CUgreenCtx green;     /* created with the first stream; atomic reads need no lock */
	_Atomic bool coming;  /* a thread is creating it */

	/* A part made by splitting another partition, not from groups of the table. */
	bool is_part;
	struct gpd_partition *base; /* a reference, or NULL: the whole device */
	struct gpd_split split;
	bool lenient;
};

struct gpd_partition_table {
	unsigned int granularity; /* the last one requested */
	unsigned int group_size;
	unsigned int count;
	CUdevResource groups[GPD_GROUPS_MAX];
	struct gpd_partition *partitions; /* those without references are in order of release */
	unsigned int idle;                /* number without references */
};

extern pthread_mutex_t gpd_partition_lock;
/* NULL: the device cannot be divided. */
extern struct gpd_partition_table *gpd_partition_tables[GPD_PARTITION_DEVICES];

/* Returns the partition of this set, with a new reference. NULL: out of memory. */
struct gpd_partition *gpd_partition_find_or_create(int device, const struct gpd_groups *set,
						   uint32_t groups) GP_LOCKED(gpd_partition_lock);
/* Adds a reference. Accepts NULL. */
struct gpd_partition *gpd_partition_ref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
/* Drops a reference. Returns a partition that the caller must destroy after unlocking, or NULL. */
struct gpd_partition *gpd_partition_unref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
/* Destroys an unreferenced partition and its green context; the lock must not be held. */
void gpd_partition_destroy(struct gpd_partition *partition);

/* Collects the driver's resources of a partition that is a part, by splitting its base. */
CUresult gpd_part_collect(const struct gpd_partition *partition, const _Atomic bool *given_up,
			  CUdevResource *resources, unsigned int *count);

#endif /* GPD_PARTITION_TABLE_H */
