/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer stream: runs operations on memory of another device that the stream's own device cannot
 * access (no peer access). It is a driver stream on that other device, ordered after all work that
 * the first stream was given.
 *
 * Ownership: the gpd_stream owns the peer stream and its events; they are created on first use.
 * Threads: executor only; no function waits for the GPU.
 * Errors: CUDA_SUCCESS, or the driver's error.
 */
#ifndef GPD_PEER_STREAM_H
#define GPD_PEER_STREAM_H

#include <cuda.h>

struct gpd_stream;

/* Sets *peer_stream_p to the peer stream on the device, ordered after the stream's work so far. On
 * success that device is current, and gpd_peer_stream_end() must follow; on failure the stream's
 * own device is current. */
CUresult gpd_peer_stream_begin(struct gpd_stream *stream, int device, CUstream *peer_stream_p);
/* Makes the stream wait for the work enqueued on the peer stream, and its own device current
 * again. */
CUresult gpd_peer_stream_end(struct gpd_stream *stream);

#endif /* GPD_PEER_STREAM_H */
