/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor says to a client on its control connection.  Main thread only.
 */
#ifndef GPD_CONTROL_REPLY_H
#define GPD_CONTROL_REPLY_H

#include "protocol/enc.h"
#include "server/common/ledger/channel.h"
#include "server/supervisor/door/peer.h"
#include "server/supervisor/tenancy/quota.h"

void gpd_control_reply_refused(struct gpd_connection *peer, Gpupool__Refused__Reason reason,
			       const char *text);
/* The session is lost; result is a CUresult. */
void gpd_control_reply_session_error(struct gpd_connection *peer, int result, const char *text);
void gpd_control_reply_bye(struct gpd_connection *peer, const char *text);
/* The session exists, in a worker with these facts, with the devices of its grant as its quota
 * shows them; known: Welcome.known_images.  0 or -ENOMEM. */
GP_MUST_CHECK int gpd_control_reply_welcome(const struct gpd_quota *quota,
					    struct gpd_connection *peer,
					    const Gpupool__Welcome *facts,
					    const struct gpd_channel_opened *opened,
					    struct gp_bytes known);
/* Another window. */
void gpd_control_reply_window(struct gpd_connection *peer, const Gpupool__Welcome *facts,
			      const struct gpd_channel_opened *opened);

#endif /* GPD_CONTROL_REPLY_H */
