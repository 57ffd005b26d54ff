/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota of objects that take mappings of this process. The system allows a process 65530
 * (vm.max_map_count), and without any left no session can start or get memory. Each session may
 * have some objects in any case; all sessions of the worker share a number beyond that.
 *
 * With 256 sessions in the worker the mappings are divided as follows:
 *
 *   pinned memory (host/host_space.c)      up to 3 each: 32 per session and 4096 more    36864
 *   mappings and address ranges, software
 *   device (memory/memory.c)               up to 2 each: 16 per session and 8192 more    24576
 *   the process itself                                                                    4090
 *
 * Ownership: a quota is a static variable of the object's file; the session owns its number.
 * Threads: any. No function blocks.
 */
#ifndef GPD_MAPPING_QUOTA_H
#define GPD_MAPPING_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>

struct gpd_mapping_quota {
	unsigned int part; /* objects that each session may have in any case */
	unsigned int max;  /* maximum number of objects of a session */
	unsigned int more; /* objects that all sessions together may have beyond their parts */
	atomic_uint extra; /* number of these in use */
};

/* Counts an object of the session that has *used of them. Returns false, and counts nothing, if the
 * session or all sessions together are at their limit. */
bool gpd_mapping_quota_acquire(struct gpd_mapping_quota *quota, atomic_uint *used);
/* Ends what gpd_mapping_quota_acquire() has counted. */
void gpd_mapping_quota_release(struct gpd_mapping_quota *quota, atomic_uint *used);

#endif /* GPD_MAPPING_QUOTA_H */
