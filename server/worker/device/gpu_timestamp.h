/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU timestamps: the GPU writes its clock into pinned memory when a stream reaches a point.
 *
 * A kernel of one thread, with the greatest priority, writes the clock. A timing event would do the
 * same, but recording an event needs exclusive access to the driver's context: it waits for the
 * launches of all other threads and starves. A caller that only needs to know whether the stream
 * has reached the point lets the GPU write 1 instead. Both are polled in memory, without the
 * driver.
 *
 * The word must be 0 before either write is enqueued, so that a read shows whether the point was
 * reached.
 *
 * Ownership: a word is an 8-byte element of a marker page (marker_page.h), named by its index,
 * which is less than GPD_GPU_TIMESTAMP_WORDS. The owner of the page assigns the words, and must not
 * release the page before the writes are done.
 * Threads: any, with the stream's device current.
 * Errors: a function that enqueues returns true, or false if the driver refuses.
 * Units: nanoseconds of the GPU's clock.
 */
#ifndef GPD_GPU_TIMESTAMP_H
#define GPD_GPU_TIMESTAMP_H

#include "server/worker/device/marker_page.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Number of words of a marker page. */
#define GPD_GPU_TIMESTAMP_WORDS (GPD_MARKER_PAGE_SLOTS / 2)

/* Loads the kernel and runs it once, because the first launch of loaded code waits for all running
 * work. Blocks until the GPU has run it (cuCtxSynchronize()). Called once per device, which must be
 * current, when its context has been created and before anything uses it. On failure a warning is
 * logged, and gpd_gpu_timestamp_record() returns false. */
void gpd_gpu_timestamp_start(int device);
/* For tests: disables the kernel of the device, and drops the loaded code. */
void gpd_gpu_timestamp_stop(int device);

/* Enqueues a write of the GPU's clock into the word, after the stream's work so far. device: the
 * stream's. Returns false, and enqueues nothing, if the driver refuses or there is no kernel. */
bool gpd_gpu_timestamp_record(int device, CUstream stream, const struct gpd_marker_page *page,
			      uint32_t word);
/* Enqueues a write of 1 into the word, after the stream's work so far. Only the low 32 bits of the
 * word are written. Returns false, and enqueues nothing, if the driver refuses. */
bool gpd_gpu_timestamp_write_marker(CUstream stream, const struct gpd_marker_page *page,
				    uint32_t word);

static inline volatile uint64_t *
gpd_gpu_timestamp_get_word(const struct gpd_marker_page *page, uint32_t word)
{
	return (volatile uint64_t *)(volatile void *)page->host + word;
}

/* Returns the value of the word; 0: the stream has not reached the point. Acquire ordering. */
static inline uint64_t
gpd_gpu_timestamp_read(const struct gpd_marker_page *page, uint32_t word)
{
	return __atomic_load_n(gpd_gpu_timestamp_get_word(page, word), __ATOMIC_ACQUIRE);
}

/* Sets the word, usually to 0 before a write is enqueued. No GPU write to the word may be
 * pending. */
static inline void
gpd_gpu_timestamp_set(const struct gpd_marker_page *page, uint32_t word, uint64_t value)
{
	__atomic_store_n(gpd_gpu_timestamp_get_word(page, word), value, __ATOMIC_RELEASE);
}

#endif /* GPD_GPU_TIMESTAMP_H */
