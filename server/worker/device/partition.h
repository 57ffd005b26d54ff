/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multiprocessors of the devices, divided among the sessions: a *partition* is a set of them
 * with the green context that confines streams to it.
 *
 * A device is split into groups of 2 multiprocessors, or of 8.  A share is met with whole groups:
 * rounded down, at least one; 0, or as many as the device has: all of it, no partition. Groups that
 * nobody has are given first, then those that fewest have; when a share ends, others that overlap
 * move to what is free.  The shares of a tenant lie within the tenant's own; sessions with the same
 * set of groups use one green context.  A green context that nobody uses is kept for a while, as
 * making one costs a millisecond and 5.5 MiB.  What no group is made of (an odd multiprocessor) is
 * used by sessions without a partition only.
 *
 * Not confined: copy engines, L2 and memory bandwidth; on compute capability 9.x a module that
 * launches kernels from kernels lets all partitions share two more multiprocessors.
 *
 * Any thread; a partition is valid as long as one holds a reference.
 */
#ifndef GPD_PARTITION_H
#define GPD_PARTITION_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_PARTITION_DEVICES 32 /* as GPD_DEVICES_MAX */
#define GPD_SPLIT_MAX 128

struct gpd_partition;

/* Some of the groups that the driver splits multiprocessors into (cuDevSmResourceSplitByCount). */
struct gpd_split {
	unsigned int flags, least;
	unsigned int groups; /* so many are asked for; 0: all is taken, unsplit */
	uint64_t picks[GPD_SPLIT_MAX / 64];
	bool rest; /* and what no group has */
};

/* What a session may use of each device; all zeros at first, and in no list. */
struct gpd_shares {
	struct gpd_shares *next;
	uint64_t tenant; /* 0: none; set before the first gpd_partition_assign() */
	bool listed;
	struct gpd_share {
		uint32_t groups, tenant_groups;          /* 0: all */
		struct gpd_partition *tenant, *assigned; /* references; NULL: the whole device */
	} devices[GPD_PARTITION_DEVICES];
	_Atomic uint32_t changed; /* a bit for each device whose streams have to move */
};

/* How many green contexts of a device that nobody uses are kept. */
extern unsigned int gpd_partition_idle_max;

/* Before there are sessions; the device's primary context is current.  A driver without green
 * contexts is said so in the log, and then all shares are the whole device. */
void gpd_partition_start(int device);
/* 2, as at first, or 8: larger groups allow the largest clusters of blocks.  While somebody has a
 * partition of the device it stays as it is. */
void gpd_partition_set_granularity(int device, unsigned int granularity);
/* For tests: forgets the device, whose partitions nobody has any more. */
void gpd_partition_stop(int device);

/*
 * Gives the session `wanted` multiprocessors of the device (0: all that its tenant has), within
 * `tenant_wanted` for all sessions of its tenant together (0: no limit).  The answer is how many it
 * has from now on; 0: the whole device.  Its streams move when it next uses one.
 */
uint32_t gpd_partition_assign(struct gpd_shares *shares, int device, uint32_t tenant_wanted,
			      uint32_t wanted);
/* The session has ended. */
void gpd_partition_unassign(struct gpd_shares *shares);

/* What new streams are made in: a new reference, or NULL: the primary context. */
struct gpd_partition *gpd_partition_current(struct gpd_shares *shares, int device);
/* A new reference; NULL is allowed. */
struct gpd_partition *gpd_partition_acquire(struct gpd_partition *partition);
/* NULL is allowed. The last one may make the driver destroy a green context. */
void gpd_partition_unref(struct gpd_partition *partition);

/*
 * A non-blocking stream, of the primary context when partition is NULL; the device's context is
 * current.  If the partition has no green context yet one is made, at a quiet moment (quiet.h);
 * CUDA_ERROR_DEINITIALIZED: *given_up (NULL: never) has become true before there was one.
 */
CUresult gpd_partition_stream(struct gpd_partition *partition, int priority,
			      const _Atomic bool *given_up, CUstream *stream);

/* The context of nodes of graphs: of one that a stream has, or the device's primary one. */
CUresult gpd_partition_context(const struct gpd_partition *partition, int device,
			       CUcontext *context_p);

/*
 * A part of a partition (NULL: of the device), with a green context of its own: a new reference,
 * for which the one to `base` is taken over; NULL: no memory.  Nobody else gets the same one.
 * lenient: if the split cannot be had it is all of `base`.
 */
struct gpd_partition *gpd_partition_part(int device, struct gpd_partition *base,
					 const struct gpd_split *split, bool lenient);
/* Whether it is such a part, of this one. */
bool gpd_partition_has_base(const struct gpd_partition *partition,
			    const struct gpd_partition *base);

/* What the driver says that a partition (NULL: the device) has.  The rest is as for
 * gpd_partition_stream(). */
CUresult gpd_partition_resource(struct gpd_partition *partition, int device,
				const _Atomic bool *given_up, CUdevResource *resource);

/* Whether a stream can be had at once. If not, the green context is made meanwhile. */
bool gpd_partition_is_ready(struct gpd_partition *partition);

#endif /* GPD_PARTITION_H */
