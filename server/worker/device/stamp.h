/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamps: the GPU writes into pinned memory when a stream comes to a place.
 *
 * A kernel of one thread, of the greatest priority, writes the GPU's clock.  An event that takes
 * the time would do the same, but recording it wants the driver's context for itself: it waits for
 * the launches of all other threads, and starves.  Who needs no time, only to see that the stream
 * has come there, lets it write a one.  Either is seen by reading the word, without the driver.
 *
 * The words are those of a wait page, eight bytes each; whoever has the page gives them out.  Any
 * thread, with the stream's device current.
 */
#ifndef GPD_STAMP_H
#define GPD_STAMP_H

#include "server/worker/device/wait_page.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_GPU_TIMESTAMP_WORDS (GPD_MARKER_PAGE_SLOTS / 2)

/* Loads the kernel and runs it once, as the first run of loaded code waits for all that runs.  Once
 * for each device, which is current, before there are sessions and after gpd_marker_page_setup().
 * Where it does not work the log says so, and gpd_gpu_timestamp_record() answers false. */
void gpd_gpu_timestamp_start(int device);
/* For tests: as if it had never worked. */
void gpd_gpu_timestamp_stop(int device);

/* The time, in nanoseconds, is written behind all that the stream has.  false: it will not be. */
bool gpd_gpu_timestamp_record(int device, CUstream stream, const struct gpd_marker_page *page,
			      uint32_t word);
/* The same with a one. */
bool gpd_gpu_timestamp_write_marker(CUstream stream, const struct gpd_marker_page *page,
				    uint32_t word);

static inline volatile uint64_t *
gpd_gpu_timestamp_get_word(const struct gpd_marker_page *page, uint32_t word)
{
	return (volatile uint64_t *)(volatile void *)page->host + word;
}

/* 0: the stream has not come there. */
static inline uint64_t
gpd_gpu_timestamp_read(const struct gpd_marker_page *page, uint32_t word)
{
	return __atomic_load_n(gpd_gpu_timestamp_get_word(page, word), __ATOMIC_ACQUIRE);
}

/* Nothing is on its way to the word. */
static inline void
gpd_gpu_timestamp_set(const struct gpd_marker_page *page, uint32_t word, uint64_t value)
{
	__atomic_store_n(gpd_gpu_timestamp_get_word(page, word), value, __ATOMIC_RELEASE);
}

#endif /* GPD_STAMP_H */
