/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that sessions of this worker bring at this moment: from the disk, or from a client that
 * has been told that they are missing.  Programs that start together load the same code; whoever
 * asks for what another one brings waits for that, as long as it comes.  Executor of the session.
 */
#ifndef GPD_IMAGE_ARRIVAL_H
#define GPD_IMAGE_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* In the session. */
struct gpd_image_arrival {
	struct gpd_image_arrival *next;
	uint8_t sha256[32];
	uint64_t ns;        /* when the last of it came; 0: there is none */
	uint64_t waited_ns; /* for other sessions, in all */
};

/* Nothing comes for so long, and nobody waits for it any more; nor does a session for longer than
 * this in all: who says again and again that it will send something holds nobody up for ever. */
extern uint64_t gpd_image_arrival_stall_ns, gpd_image_arrival_wait_ns;

/* The session brings it, till gpd_image_arrival_end().  false: another one did, and has ended, so
 * that the image may be there; if it is not, this is to be called again. */
bool gpd_image_arrival_begin(struct gpd_session *session, const uint8_t sha256[32]);

/* More of it has come. */
void gpd_image_arrival_goes_on(struct gpd_session *session);

/* It is there, or will not come; also if the session brings none. */
void gpd_image_arrival_end(struct gpd_session *session);

#endif /* GPD_IMAGE_ARRIVAL_H */
