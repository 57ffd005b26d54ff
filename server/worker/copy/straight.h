/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies past the staging: the lanes' RDMA device reads and writes device memory by itself
 * (peer_memory.h).  Whether a copy can go straight is asked once, when it begins; without such a
 * device the answer is no, and nothing else of this is used.
 */
#ifndef GPD_STRAIGHT_H
#define GPD_STRAIGHT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_chunk;
struct gpd_copy_out;
struct gpd_lane;
struct gpd_session;
struct gpd_stream;

/*
 * From the device; executor.  Whether the copy is taken over: it goes straight, when its stream is
 * through with what came before, unless it is taken back until then.  A short end may have been
 * given to the stream either way.
 */
bool gpd_gpudirect_out_schedule(struct gpd_session *session, struct gpd_copy_out *out);
/* The executor is to give the stream other work.  false: it is on its way, or done. */
bool gpd_gpudirect_out_cancel(struct gpd_copy_out *out);
/* Whether it is taken over, and neither taken back nor done. */
bool gpd_gpudirect_out_is_active(const struct gpd_copy_out *out);
/* Sent and answered: the executor's again, to be left. */
bool gpd_gpudirect_out_is_done(const struct gpd_copy_out *out);

/* To the device: how much of a copy may go past the stream. */
struct gpd_gpudirect_in {
	int device;    /* whose memory it is; -1: none that lanes reach */
	bool may;      /* the stream is through with what came before */
	bool waits;    /* it is not; stream->before is behind that */
	uint64_t went; /* bytes */
};

/* Executor.  The stream has been ordered behind all that the copy must wait for. */
struct gpd_gpudirect_in gpd_gpudirect_in_begin(struct gpd_session *session,
					       struct gpd_stream *stream, uint64_t dst,
					       uint64_t size);
/* A chunk has been given to the stream: whether the others may go straight from now on. */
void gpd_gpudirect_in_poll(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
			   struct gpd_gpudirect_in *gpudirect);
/* All chunks are there: the device's later work shall see them. */
CUresult gpd_gpudirect_in_finish(struct gpd_session *session,
				 const struct gpd_gpudirect_in *gpudirect);

/* A lane's thread, under the lanes' lock: where the chunk of the executor's copy goes; NULL:
 * through staging. */
void *gpd_gpudirect_in_get_address(const struct gpd_lane *lane, const struct gp_chunk *chunk);

#endif /* GPD_STRAIGHT_H */
