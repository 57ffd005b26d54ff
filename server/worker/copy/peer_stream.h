/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer stream: runs operations on memory of another device that the stream's own device cannot
 * access (no peer access). It is a driver stream on that other device, ordered after all work that
 * the first stream was given. The gpd_stream owns it and creates it on first use.
 *
 * Threads: executor only.
 * Errors: CUresult of the driver.
 */
#ifndef GPD_PEER_STREAM_H
#define GPD_PEER_STREAM_H

#include <cuda.h>

struct gpd_stream;

/* Returns the peer stream on the device, ordered after the stream's work so far. On success that
 * device is current; on failure the stream's own device is. */
CUresult gpd_peer_stream_begin(struct gpd_stream *stream, int device, CUstream *peer_stream_p);
/* Makes the stream wait for the work given to the peer stream. Its own device is current again. */
CUresult gpd_peer_stream_end(struct gpd_stream *stream);

#endif /* GPD_PEER_STREAM_H */
