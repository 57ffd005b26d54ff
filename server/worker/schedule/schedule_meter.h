/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a session's kernels take, by the GPU's clock.
 *
 * Launches are taken together in batches; the first launch of a batch on a stream opens an entry
 * (a stamp in front of it), the batch's end closes it (a stamp behind it; device/stamp.h).  What
 * lies between is time in which the session used the GPU; where entries of several streams overlap
 * it counts once.  An entry whose time does not count has a mark behind it only, or nothing.
 *
 * A stamp of the GPU's clock needs a place on a multiprocessor.  Were it put on a stream while
 * kernels of the session's other streams may fill the GPU, a copy behind it that these wait for
 * would never come.  So such an entry has marks, and its length is from the look that found the
 * first to the look that found the second: right on average, as long as looks come by themselves.
 *
 * Opening and closing are for the executor, with the device current; harvesting for any thread.
 * When the GPU is lost all entries are done, and took no time.
 */
#ifndef GPD_SCHEDULE_METER_H
#define GPD_SCHEDULE_METER_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_USAGE_METER_ENTRIES 256
/* Of one batch: streams. */
#define GPD_USAGE_METER_BATCH 32

struct gpd_usage_meter_entry;
struct gpd_marker_page;

struct gpd_usage_meter {
	pthread_mutex_t lock;
	int device;
	struct gpd_marker_page *page;               /* two words for each entry */
	uint32_t made;                              /* entries that have words, in use or free */
	struct gpd_usage_meter_entry *first, *last; /* closed ones, in the order of closing */
	struct gpd_usage_meter_entry *free;
	struct gpd_usage_meter_entry *open[GPD_USAGE_METER_BATCH]; /* executor's */
	uint32_t open_count;
	_Atomic uint32_t entries;                /* open and closed */
	_Atomic uint64_t launches;               /* closed, but not known to be done */
	_Atomic uint64_t launch_ns;              /* what one took, of late; 0: not known */
	_Atomic uint32_t polled;                 /* closed entries whose length is found by looks */
	uint64_t busy_until_ns;                  /* by the GPU's clock */
	uint64_t polled_until_ns;                /* by ours */
	uint64_t gathered_ns, gathered_launches; /* since launch_ns was found */
	uint64_t serial;                         /* executor's: entries that were opened */
};

/* 0 or -ENOMEM; with a context current. */
int gpd_usage_meter_init(struct gpd_usage_meter *meter, int device);
/* Nothing is open, and nothing of it is on the GPU any more. */
void gpd_usage_meter_fini(struct gpd_usage_meter *meter);

/* An entry of the present batch; timed: its time counts, else only its end is seen.  alone: nothing
 * will run on the session's other streams.  Where there is no room, or the driver would not, the
 * launch is not measured. */
void gpd_usage_meter_open(struct gpd_usage_meter *meter, CUstream stream, bool timed, bool alone);
static inline bool
gpd_usage_meter_has_room(const struct gpd_usage_meter *meter)
{
	return meter->open_count < GPD_USAGE_METER_BATCH &&
	       atomic_load(&meter->entries) < GPD_USAGE_METER_ENTRIES;
}

/*
 * The batch ends: so many launches, that stand for `times` as many batches.  joins: if its time
 * does not count it may have no mark of its own, as long as it and those before it that had none
 * are not more launches than that; their end is then seen when the stream has nothing to do.
 */
void gpd_usage_meter_close(struct gpd_usage_meter *meter, uint32_t launches, uint32_t times,
			   uint32_t joins);

/* What has no mark gets one: a stream is on its way out. */
void gpd_usage_meter_mark(struct gpd_usage_meter *meter);

/* What has become known since the last time. */
struct gpd_usage_meter_harvest {
	uint64_t busy_ns; /* of the entries themselves */
	uint64_t all_ns;  /* with what they stand for */
	uint64_t batches; /* that these stand for */
	uint32_t entries; /* that were found done */
};
struct gpd_usage_meter_harvest gpd_usage_meter_collect(struct gpd_usage_meter *meter);

/* Which of the entries that are not done is on the GPU at the moment: a number of its own, of which
 * the same one has the same; 0: none is known to be. */
uint64_t gpd_usage_meter_get_running(struct gpd_usage_meter *meter);

#endif /* GPD_SCHEDULE_METER_H */
