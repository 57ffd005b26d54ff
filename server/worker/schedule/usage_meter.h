/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage meter: measures how long a session's kernels take, by the GPU's clock.
 *
 * Launches are grouped into batches. The first launch of a batch on a stream opens an entry, which
 * enqueues a GPU timestamp before it; the end of the batch closes the entry with another timestamp
 * (device/gpu_timestamp.h). The time between counts as GPU time of the session; where entries of
 * several streams overlap it counts once. An entry whose time is not measured ends with a marker, a
 * value that the GPU writes, or with nothing.
 *
 * A GPU timestamp is written by a kernel and needs a free slot on a multiprocessor. If it were
 * enqueued on a stream while kernels of the session's other streams fill the GPU, and those wait
 * for a copy that follows it, it would never run. Entries in such a situation therefore use
 * markers, and their length is the time between the polls that found the first and the second
 * marker: correct on average if polls are independent of the work.
 *
 * When the GPU is lost, all entries count as done, with no time.
 *
 * Ownership: part of a run (turn.h), from gpd_usage_meter_init() to gpd_usage_meter_fini().
 * Sequence of calls: gpd_usage_meter_open() before the first launch of a batch on each of its
 * streams, then gpd_usage_meter_close() after its last launch; gpd_usage_meter_mark() before a
 * stream is destroyed; gpd_usage_meter_collect() from time to time by the device's thread (turn.c).
 *
 * Threads: opening, closing and marking: executor only, with the device current, after earlier
 * launches have been passed to the driver (gpd_issue_settle(), issue.h). Collecting: any. The lock
 * protects the closed entries; the functions acquire it. No function waits for the GPU.
 * Units: nanoseconds.
 */
#ifndef GPD_USAGE_METER_H
#define GPD_USAGE_METER_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum number of entries, open and closed. */
#define GPD_USAGE_METER_ENTRIES 256
/* Maximum number of streams in a batch, and therefore of open entries. */
#define GPD_USAGE_METER_BATCH 32

struct gpd_usage_meter_entry;
struct gpd_marker_page;

/* The meter of one session on one device. */
struct gpd_usage_meter {
	pthread_mutex_t lock; /* protects the closed and the unused entries */
	int device;
	struct gpd_marker_page *page; /* pinned memory with two 64-bit words per entry */
	uint32_t made;                /* number of entries that have been created, in use or free */
	struct gpd_usage_meter_entry *first,
		*last;                      /* closed entries in the order of closing; lock */
	struct gpd_usage_meter_entry *free; /* list of unused entries; lock */
	struct gpd_usage_meter_entry *open[GPD_USAGE_METER_BATCH]; /* open entries; executor only */
	uint32_t open_count;      /* number of valid elements of open; executor only */
	_Atomic uint32_t entries; /* number of entries, open and closed */
	/* Number of launches in closed entries that are not known to be done. */
	_Atomic uint64_t launches;
	_Atomic uint64_t launch_ns; /* recent time of one launch; 0: unknown */
	_Atomic uint32_t polled;    /* number of closed entries measured by polling */
	/* End of the last entry that was counted, by the GPU's clock; lock. */
	uint64_t busy_until_ns;
	/* End of the last polled entry that was counted, by the host's clock; lock. */
	uint64_t polled_until_ns;
	/* Time and launches measured since launch_ns was updated; lock. */
	uint64_t gathered_ns, gathered_launches;
	uint64_t serial; /* number of entries opened; executor only */
};

/* Initializes the meter of a device, whose context must be current. May block until pinned memory
 * is allocated (marker_page.h). Returns 0; or -ENOMEM, and nothing has to be freed. */
int gpd_usage_meter_init(struct gpd_usage_meter *meter, int device);
/* Frees what the meter contains. No entry may be open, no other thread may use the meter, and the
 * GPU must have no timestamps left to write. */
void gpd_usage_meter_fini(struct gpd_usage_meter *meter);

/* Opens an entry of the current batch before the batch's first launch on the stream, which the
 * batch has no entry for. timed: its time is measured, else only its end is observed; the same for
 * all entries of a batch. alone: no work will run on the session's other streams. If there is no
 * free entry, or the driver fails, the launch is not measured. */
void gpd_usage_meter_open(struct gpd_usage_meter *meter, CUstream stream, bool timed, bool alone);
static inline bool
gpd_usage_meter_has_room(const struct gpd_usage_meter *meter)
{
	return meter->open_count < GPD_USAGE_METER_BATCH &&
	       atomic_load(&meter->entries) < GPD_USAGE_METER_ENTRIES;
}

/*
 * Ends the batch of `launches` launches, on all its streams together, and closes its entries.
 * times: number of batches that its time represents; 0: not timed. joins: a batch whose time is not
 * measured needs no marker of its own as long as it and the preceding batches without a marker have
 * at most this many launches; their end is then found by querying the stream. Does nothing if no
 * entry is open.
 */
void gpd_usage_meter_close(struct gpd_usage_meter *meter, uint32_t launches, uint32_t times,
			   uint32_t joins);

/* Adds a marker to closed entries without one, before their stream is destroyed; the stream is not
 * queried afterwards. */
void gpd_usage_meter_mark(struct gpd_usage_meter *meter);

/* Measurements that became known since the last call. */
struct gpd_usage_meter_harvest {
	uint64_t busy_ns; /* GPU time of the entries that were found done */
	uint64_t all_ns;  /* busy_ns scaled to the batches that these entries represent */
	uint64_t batches; /* number of batches that these entries represent */
	/* number of entries found done, without those that a later entry of their stream covers */
	uint32_t entries;
};
/* Any thread: polls all closed entries, and removes and returns the measurements of those that are
 * done. */
struct gpd_usage_meter_harvest gpd_usage_meter_collect(struct gpd_usage_meter *meter);

/* Any thread: returns the serial number of a closed entry whose time is measured, that the GPU has
 * begun and that the last gpd_usage_meter_collect() has not found done; 0: there is none. */
uint64_t gpd_usage_meter_get_running(struct gpd_usage_meter *meter);

#endif /* GPD_USAGE_METER_H */
