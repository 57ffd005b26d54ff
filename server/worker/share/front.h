/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that are ready for the default streams of sessions, as many at each of the GPU's two
 * front ends.
 *
 * A GPU takes work from streams at two places, and each of them begins some 500,000 small kernels a
 * second of several streams.  The driver decides where a stream belongs when it gets its first
 * work: in turns, but not where another stream has just had work.  A session's memory is cleared
 * before its first launch, so all sessions came to the place where that is not done, which halved
 * what eight of them launch (docs/measured.md).  So streams get their first work here, one after
 * another, before there are sessions, and whoever needs one gets it where fewer are in use.
 *
 * With more streams than queues the driver binds streams anew, so after that they are made anew, as
 * soon as no session has a stream.  Any thread, with the device current.
 */
#ifndef GPD_FRONT_H
#define GPD_FRONT_H

#include <cuda.h>
#include <stdbool.h>

/* Once for each device, before there are sessions and after gpd_marker_page_setup().  Without
 * memory there are fewer of them, or none. */
void gpd_stream_pool_start(int device);

/* A non-blocking stream of the least priority, with nothing in it; NULL: all are in use. */
CUstream gpd_stream_pool_acquire(int device);
/* Nothing is left in it.  false: it is none of these. */
bool gpd_stream_pool_release(CUstream stream);

/* A session has a stream more, from here or not; one less, after it was given or destroyed, and
 * then another device may be current. */
void gpd_stream_pool_stream_added(void);
void gpd_stream_pool_stream_removed(void);

#endif /* GPD_FRONT_H */
