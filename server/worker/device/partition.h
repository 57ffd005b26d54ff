/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distribution of each device's multiprocessors (SMs) among the sessions. A *partition* is a set of
 * SMs with the green context that confines streams to it. A *share* is the number of SMs that a
 * session gets.
 *
 * A device is split into groups of 2 or 8 SMs. A share is rounded down to whole groups, but is at
 * least one group; a share of 0, or of all SMs, is the whole device without a partition. Unused
 * groups are assigned first, then those with the fewest users. When a share ends, other shares that
 * overlap move to the free groups. The shares of a tenant's sessions lie within the tenant's own
 * share, and sessions with the same set of groups use the same green context. Unused green contexts
 * are cached, because creating one takes a millisecond and 5.5 MiB. SMs that do not fill a group
 * are used only by sessions without a partition.
 *
 * Not confined: copy engines, L2 cache and memory bandwidth. On compute capability 9.x, a module
 * that launches kernels from kernels makes all partitions share two more SMs.
 *
 * Ownership: partitions are reference counted; the caller drops references that functions return.
 * Threads: any, unless noted; the functions use locks of their own. Every `device` is a valid
 * ordinal (device.h).
 * Errors: CUDA_SUCCESS or the driver's error, unless noted.
 */
#ifndef GPD_PARTITION_H
#define GPD_PARTITION_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_PARTITION_DEVICES 32 /* same as GPD_DEVICES_MAX */
/* Maximum number of groups of a split. */
#define GPD_SPLIT_MAX 128

struct gpd_partition;

/* A selection of the groups that the driver splits SMs into (cuDevSmResourceSplitByCount()). */
struct gpd_split {
	/* Arguments of the driver's split: its flags, and the minimum number of SMs per group. From
	 * the client; the driver checks them. */
	unsigned int flags, least;
	/* number of groups requested, at most GPD_SPLIT_MAX; 0: all SMs, unsplit, and picks
	 * and rest are ignored */
	unsigned int groups;
	uint64_t picks[GPD_SPLIT_MAX / 64]; /* bit n: group n is selected */
	bool rest;                          /* also select the SMs that are in no group */
};

/* A session's shares of all devices. Initialized to zeros, except the tenant. Must stay valid from
 * the first gpd_partition_assign() to gpd_partition_unassign(). Protected by gpd_partition_lock
 * (partition_table.h), except tenant and changed. */
struct gpd_shares {
	struct gpd_shares *next; /* list of all sessions' shares */
	/* Identity of the tenant: its index in the ledger plus 1; 0: none. Set before the first
	 * gpd_partition_assign(), then constant. */
	uint64_t tenant;
	bool listed; /* it is in the list */
	struct gpd_share {
		/* number of groups requested by the session and by its tenant; 0: all */
		uint32_t groups, tenant_groups;
		/* Partitions of the tenant and, within it, of the session's streams; references.
		 * NULL: the whole device. */
		struct gpd_partition *tenant, *assigned;
	} devices[GPD_PARTITION_DEVICES];
	/* Bit n: the session's streams on device n have to move. Set here, also when another
	 * session's share changes; cleared by the executor (gpd_stream_follow_shares()). */
	_Atomic uint32_t changed;
};

/* Maximum number of unused green contexts cached per device. Changed only by tests. */
extern unsigned int gpd_partition_idle_max;

/* Main thread, before there are sessions: splits the device, whose primary context must be current.
 * If the driver has no green contexts, a message is logged and every share is the whole device. */
void gpd_partition_start(int device);
/* Sets the group size: 2 (the initial value) or 8, which allows the largest thread block clusters.
 * Has no effect while any partition of the device is in use, so it is called again whenever a
 * session gets its share. If the driver refuses the size, logs a warning and keeps the present one.
 * May block in the driver to destroy cached green contexts. */
void gpd_partition_set_granularity(int device, unsigned int granularity);
/* For tests: frees the device's table; no partition of it may be in use. */
void gpd_partition_stop(int device);

/*
 * Assigns `wanted` SMs of the device to the session (0: all SMs of its tenant), within
 * `tenant_wanted` SMs for all sessions of its tenant together (0: no limit). Returns the number of
 * SMs assigned; 0: the whole device, also if it cannot be divided. If memory is exhausted, the
 * session keeps its present share. The session's streams move when they are next used
 * (shares->changed), and so may those of other sessions, if groups have become free. May block in
 * the driver to destroy a green context.
 */
uint32_t gpd_partition_assign(struct gpd_shares *shares, int device, uint32_t tenant_wanted,
			      uint32_t wanted);
/* Removes the shares of an ended session, whose streams keep their own references. Other sessions'
 * shares may move to the free groups. Does nothing if it had none. May block in the driver to
 * destroy a green context. */
void gpd_partition_unassign(struct gpd_shares *shares);

/* Returns the partition for new streams, with a new reference; NULL: the primary context. */
struct gpd_partition *gpd_partition_current(struct gpd_shares *shares, int device);
/* Adds a reference and returns the partition. Accepts NULL. */
struct gpd_partition *gpd_partition_acquire(struct gpd_partition *partition);
/* Drops a reference. Accepts NULL. May block in the driver to destroy a green context: without
 * gpd_partition_lock. */
void gpd_partition_unref(struct gpd_partition *partition);

/*
 * Creates a non-blocking stream in the partition (NULL: in the primary context); the device's
 * primary context must be current. If the partition, or a base that it is a part of, has no green
 * context yet, blocks on a nearly idle device (quiesce.h) and creates one. Returns CUDA_SUCCESS
 * with *stream set, which the caller destroys (cuStreamDestroy()) before it drops its reference to
 * the partition. On failure *stream is undefined.
 *
 * CUDA_ERROR_DEINITIALIZED: *given_up became true first (NULL: never), or the GPU is lost.
 * CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: the driver cannot make the split of a part.
 * CUDA_ERROR_NOT_SUPPORTED: a part, and the driver cannot query resources.
 * Other errors are those of the driver.
 */
CUresult gpd_partition_stream(struct gpd_partition *partition, int priority,
			      const _Atomic bool *given_up, CUstream *stream);

/* Sets *context_p to the context for graph nodes: that of the partition, which must have a stream
 * already (gpd_partition_stream()), or with NULL the device's primary context. The context belongs
 * to the partition or device. */
CUresult gpd_partition_context(const struct gpd_partition *partition, int device,
			       CUcontext *context_p);

/*
 * Creates a part of a partition (base NULL: of the device). Its own green context is created with
 * its first stream, and only then errors of the split are reported. Consumes the reference to
 * `base`, also on failure. split: copied. lenient: if the driver cannot make the split, the part is
 * all of `base`. Returns a new reference; NULL: out of memory.
 */
struct gpd_partition *gpd_partition_part(int device, struct gpd_partition *base,
					 const struct gpd_split *split, bool lenient);
/* Returns whether the partition was made by gpd_partition_part() from this base (NULL: from the
 * device). False if partition is NULL. */
bool gpd_partition_has_base(const struct gpd_partition *partition,
			    const struct gpd_partition *base);

/* Sets *resource to the driver's SM resource of a partition (NULL: of the device). Creates the
 * green context if necessary, and then needs a current context, waits and fails as
 * gpd_partition_stream() does. CUDA_ERROR_NOT_SUPPORTED: the driver cannot query resources. */
CUresult gpd_partition_resource(struct gpd_partition *partition, int device,
				const _Atomic bool *given_up, CUdevResource *resource);

/* Returns whether a stream can be created in the partition (NULL: true) without a long wait. If it
 * cannot, a thread starts to create the green context, and the caller tries again later; if no
 * thread can be started, returns true. The caller keeps its reference. Blocks for at most about
 * gpd_quiesce_short_ns (quiesce.h). The device's primary context must be current. */
bool gpd_partition_is_ready(struct gpd_partition *partition);

#endif /* GPD_PARTITION_H */
