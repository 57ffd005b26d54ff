/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage meter: measures how long a session's kernels take, by the GPU's clock.
 *
 * Launches are grouped into batches. The first launch of a batch on a stream opens an entry, which
 * enqueues a GPU timestamp before it; the end of the batch closes the entry with another timestamp
 * (device/stamp.h). The time between counts as GPU time of the session; where entries of several
 * streams overlap it counts once. An entry whose time is not measured has only a marker after it,
 * or nothing.
 *
 * A GPU timestamp needs a place on a multiprocessor. If it were enqueued on a stream while kernels
 * of the session's other streams fill the GPU, and those wait for a copy that follows it, it would
 * never run. Entries in such a situation therefore use markers, and their length is the time
 * between the polls that found the first and the second marker: correct on average if polls are
 * independent of the work.
 *
 * When the GPU is lost, all entries count as done, with no time.
 *
 * Ownership: part of a run.
 * Threads: opening and closing: executor only, with the device current; collecting: any.
 * Units: nanoseconds.
 */
#ifndef GPD_USAGE_METER_H
#define GPD_USAGE_METER_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_USAGE_METER_ENTRIES 256
/* Maximum number of streams in a batch. */
#define GPD_USAGE_METER_BATCH 32

struct gpd_usage_meter_entry;
struct gpd_marker_page;

/* The meter of one session on one device. */
struct gpd_usage_meter {
	pthread_mutex_t lock;
	int device;
	struct gpd_marker_page *page;               /* two words per entry */
	uint32_t made;                              /* entries that have words, in use or free */
	struct gpd_usage_meter_entry *first, *last; /* closed entries, in the order of closing */
	struct gpd_usage_meter_entry *free;
	struct gpd_usage_meter_entry *open[GPD_USAGE_METER_BATCH]; /* executor's */
	uint32_t open_count;
	_Atomic uint32_t entries;                /* open and closed */
	_Atomic uint64_t launches;               /* closed, not yet known to be done */
	_Atomic uint64_t launch_ns;              /* recent time of a launch; 0: unknown */
	_Atomic uint32_t polled;                 /* closed entries measured by polling */
	uint64_t busy_until_ns;                  /* by the GPU's clock */
	uint64_t polled_until_ns;                /* by the host's clock */
	uint64_t gathered_ns, gathered_launches; /* since launch_ns was updated */
	uint64_t serial;                         /* executor's: number of entries opened */
};

/* Returns 0 or -ENOMEM. A context must be current. */
int gpd_usage_meter_init(struct gpd_usage_meter *meter, int device);
/* No entry may be open, and the GPU must have no timestamps left to write. */
void gpd_usage_meter_fini(struct gpd_usage_meter *meter);

/* Opens an entry of the current batch. timed: its time is measured, else only its end is observed.
 * alone: no work will run on the session's other streams. If there is no room, or the driver fails,
 * the launch is not measured. */
void gpd_usage_meter_open(struct gpd_usage_meter *meter, CUstream stream, bool timed, bool alone);
static inline bool
gpd_usage_meter_has_room(const struct gpd_usage_meter *meter)
{
	return meter->open_count < GPD_USAGE_METER_BATCH &&
	       atomic_load(&meter->entries) < GPD_USAGE_METER_ENTRIES;
}

/*
 * Ends the batch of `launches` launches; its time represents `times` batches. joins: if its time is
 * not measured, it needs no marker of its own as long as it and preceding batches without one have
 * at most this many launches; their end is then found by querying the stream.
 */
void gpd_usage_meter_close(struct gpd_usage_meter *meter, uint32_t launches, uint32_t times,
			   uint32_t joins);

/* Adds a marker to entries without one, before their stream is destroyed. */
void gpd_usage_meter_mark(struct gpd_usage_meter *meter);

/* Measurements that became known since the last call. */
struct gpd_usage_meter_harvest {
	uint64_t busy_ns; /* time of the entries */
	uint64_t all_ns;  /* scaled to the batches that they represent */
	uint64_t batches; /* number of batches represented */
	uint32_t entries; /* number of entries found done */
};
struct gpd_usage_meter_harvest gpd_usage_meter_collect(struct gpd_usage_meter *meter);

/* Returns the serial number of an unfinished entry that is on the GPU now; 0: none is known. */
uint64_t gpd_usage_meter_get_running(struct gpd_usage_meter *meter);

#endif /* GPD_USAGE_METER_H */
