/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of admission, for admission.c and admission_lane.c only.  Main thread.
 */
#ifndef GPD_ADMISSION_STATE_H
#define GPD_ADMISSION_STATE_H

#include "server/admission.h"

/* admission.c */
void gpd_admission_set_state(struct gpd_admission *admission, struct gpd_peer *peer,
			     enum gpd_peer_state state, int64_t deadline_ms);
void gpd_admission_unlink(struct gpd_admission *admission, struct gpd_peer *peer);
/* A message for the worker, who gets the descriptor unless it is -1. */
void gpd_admission_tell(struct gpd_child *worker, const struct gpd_channel_header *header,
			const void *data, size_t size, int fd);

/* admission_lane.c: the peer, which had this preamble, is a lane; it is gone afterwards. */
void gpd_admission_take_lane(struct gpd_admission *admission, struct gpd_peer *lane,
			     const struct gp_preamble *preamble);

#endif /* GPD_ADMISSION_STATE_H */
