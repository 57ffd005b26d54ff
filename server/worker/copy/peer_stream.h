/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer streams. The peer stream of a session's stream is a driver stream on another device. It runs
 * operations on memory of that device that the stream's own device cannot access (no peer access).
 * Its operations are ordered after all work enqueued on the session's stream before
 * gpd_peer_stream_begin(), and before all work enqueued there after gpd_peer_stream_end().
 *
 * Ownership: the gpd_stream owns its peer stream, one at a time, and the events; they are created
 * on first use and replaced when another device is used.
 * Threads: executor only; no function waits for the GPU.
 * Errors: CUDA_SUCCESS, or the driver's error.
 */
#ifndef GPD_PEER_STREAM_H
#define GPD_PEER_STREAM_H

#include <cuda.h>

struct gpd_stream;

/* Sets *peer_stream_p to the peer stream on the device, borrowed until gpd_peer_stream_end().
 * Called after gpd_stream_begin() (stream/stream.h). On success that device is current, and must be
 * so until gpd_peer_stream_end(), which must follow before the next begin for this stream (calls do
 * not nest). On failure the stream's own device is current, *peer_stream_p is not usable, and
 * gpd_peer_stream_end() must not be called. */
CUresult gpd_peer_stream_begin(struct gpd_stream *stream, int device, CUstream *peer_stream_p);
/* Makes the stream wait for the work enqueued on the peer stream, and makes the stream's own device
 * current again, also on failure. On failure later work of the stream is not ordered after the work
 * of the peer stream. */
CUresult gpd_peer_stream_end(struct gpd_stream *stream);

#endif /* GPD_PEER_STREAM_H */
