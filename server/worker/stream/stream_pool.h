/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream pool: prepared streams for the default streams of sessions, balanced over the two front
 * ends of the GPU.
 *
 * A GPU accepts work from streams at two front ends, each of which starts about 500,000 small
 * kernels per second of several streams. The driver assigns a stream to one of them at its first
 * work: alternately, but avoiding the one where another stream has just had work. A session's
 * memory is zeroed before its first launch, so all sessions got the front end that does not do
 * that, which halved the launch rate of eight sessions (docs/measured.md). The pool therefore gives
 * streams their first work one after another, before there are sessions, and hands out a stream of
 * the front end with fewer streams in use.
 *
 * With more streams than hardware queues the driver rebinds streams. After that the pool recreates
 * its streams as soon as no session has any.
 *
 * Ownership: the pool owns its streams; a caller borrows one until gpd_stream_pool_release().
 * Threads: any.
 * Errors: none; without streams in the pool the caller creates its own.
 */
#ifndef GPD_STREAM_POOL_H
#define GPD_STREAM_POOL_H

#include <cuda.h>
#include <stdbool.h>

/* Creates the pool's streams of a device. Blocks on the GPU. To be called once per device, before
 * there are sessions and after gpd_marker_page_setup(), with the device current. On failure the
 * pool has fewer streams, or none. With the software device it has none. */
void gpd_stream_pool_start(int device);

/* Returns a non-blocking stream of the device's primary context, with priority 0 (the lowest) and
 * without work. Returns NULL if the pool has none left; the caller then creates its own stream. */
CUstream gpd_stream_pool_acquire(int device);
/* Returns a stream without work to the pool, and returns true. Returns false if it is not from the
 * pool; the caller must then destroy it. */
bool gpd_stream_pool_release(CUstream stream);

/* Counts a stream that a session has created, from the pool or not. Called once for each such
 * stream, before gpd_stream_pool_acquire(). */
void gpd_stream_pool_stream_added(void);
/* Ends the count of gpd_stream_pool_stream_added(), after the stream was released or destroyed.
 * With the last stream of all sessions, may recreate the streams of the pool, which blocks on the
 * GPU and changes the current device. */
void gpd_stream_pool_stream_removed(void);

#endif /* GPD_STREAM_POOL_H */
