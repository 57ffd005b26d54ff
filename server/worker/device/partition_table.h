/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal table of partitions (partition.h), shared by partition.c, which creates them,
 * partition_assign.c, which assigns them, and partition_part.c, which splits them. A group is a set
 * of 2 or 8 multiprocessors; the table of a device contains its groups and its partitions.
 *
 * Ownership: partitions are reference counted. The table owns the partitions that consist of
 * groups, and caches them without references; a part (is_part) is not in the table and is destroyed
 * with its last reference.
 * Threads: gpd_partition_lock protects everything except the creation and use of a partition's
 * green context, which has the partition's own lock.
 */
#ifndef GPD_PARTITION_TABLE_H
#define GPD_PARTITION_TABLE_H

#include "base/lock.h"
#include "server/worker/device/partition.h"

#include <pthread.h>

/* Maximum number of groups of a device. */
#define GPD_GROUPS_MAX 256

/* A set of groups, one bit per index of the group. */
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

/* A partition. */
struct gpd_partition {
	struct gpd_partition *next; /* list gpd_partition_table.partitions */
	int device;
	struct gpd_groups set; /* its groups; empty for a part */
	uint32_t groups;       /* number of groups in set */
	unsigned int refs;     /* number of references; 0: cached */
	/* Protects the green context: the driver does not allow two threads in it. */
	pthread_mutex_t lock;
	/* Created with the first stream, with the lock; NULL before. Then constant, so atomic reads
	 * need no lock. */
	CUgreenCtx green;
	_Atomic bool coming; /* a thread is creating the green context */

	/* It was made by splitting another partition, not from groups of the table. */
	bool is_part;
	/* Part: the partition that was split, a reference; NULL: the whole device. */
	struct gpd_partition *base;
	struct gpd_split split; /* part: the share of `base` that it contains */
	bool lenient;           /* part: all of base if the driver cannot make the split */
};

/* Table of a device. */
struct gpd_partition_table {
	/* Group size of the last split that was tried; if the driver refused it, the groups below
	 * are from an earlier split. */
	unsigned int granularity;
	unsigned int group_size;              /* multiprocessors per group, 2 or 8 */
	unsigned int count;                   /* number of groups */
	CUdevResource groups[GPD_GROUPS_MAX]; /* SMs of each group; count elements */
	/* All partitions except parts. Those without references have a green context and are in
	 * order of release. */
	struct gpd_partition *partitions;
	unsigned int idle; /* number of partitions without references */
};

extern pthread_mutex_t gpd_partition_lock;
/* Tables by ordinal; NULL: the device cannot be divided. */
extern struct gpd_partition_table *gpd_partition_tables[GPD_PARTITION_DEVICES];

/* Returns the partition of this set of `groups` groups, with a new reference; creates it if
 * necessary, without a green context. The table of the device must exist. NULL: out of memory. */
struct gpd_partition *gpd_partition_find_or_create(int device, const struct gpd_groups *set,
						   uint32_t groups) GP_LOCKED(gpd_partition_lock);
/* Adds a reference and returns the partition, which may be one from the table without references.
 * Accepts NULL. */
struct gpd_partition *gpd_partition_ref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
/* Drops a reference. Accepts NULL. Returns a partition, this one or another cached one, that the
 * caller must destroy with gpd_partition_destroy() after unlocking; NULL: there is none. */
struct gpd_partition *gpd_partition_unref_locked(struct gpd_partition *partition)
	GP_LOCKED(gpd_partition_lock);
/* Destroys a partition that gpd_partition_unref_locked() has returned, its green context (unless
 * the GPU is lost) and its reference to its base; may block in the driver. gpd_partition_lock must
 * not be held. */
void gpd_partition_destroy(struct gpd_partition *partition);

/* Collects the driver's resources of a part, by splitting its base. resources: array of
 * GPD_GROUPS_MAX elements. *count: 0 before the call; then the number of elements that were set.
 * Waits and fails as gpd_partition_resource() does, and returns
 * CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION if the split has fewer groups than selected and the
 * part is not lenient. */
CUresult gpd_part_collect(const struct gpd_partition *partition, const _Atomic bool *given_up,
			  CUdevResource *resources, unsigned int *count);

#endif /* GPD_PARTITION_TABLE_H */
