/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on memory that a stream's device does not reach: a stream of the driver's on the other
 * device carries them out, behind all that the first one was given.  It belongs to the first one,
 * which makes it on first need.  Executor only.
 */
#ifndef GPD_ASIDE_H
#define GPD_ASIDE_H

#include <cuda.h>

struct gpd_stream;

/* The stream to use; its device is current, if this succeeds. */
CUresult gpd_peer_stream_begin(struct gpd_stream *stream, int device, CUstream *peer_stream_p);
/* Puts the stream behind what was given aside; its own device is current again. */
CUresult gpd_peer_stream_end(struct gpd_stream *stream);

#endif /* GPD_ASIDE_H */
