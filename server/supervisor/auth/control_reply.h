/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of the supervisor to a client on its control connection.
 *
 * Each function sends one message by gpd_connection_send() (connection.h), which does not wait: it
 * shuts the connection down if the client does not read. Strings need to be valid during the call
 * only.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_CONTROL_REPLY_H
#define GPD_CONTROL_REPLY_H

#include "protocol/enc.h"
#include "server/common/ledger/channel.h"
#include "server/supervisor/auth/connection.h"
#include "server/supervisor/tenancy/quota.h"

/* Refuses the client a session, with a reason and a text for its user. */
void gpd_control_reply_refused(struct gpd_connection *connection, Gpupool__Refused__Reason reason,
			       const char *text);
/* Reports that the session is lost. result: a CUresult; text: the reason for the user. */
void gpd_control_reply_session_error(struct gpd_connection *connection, int result,
				     const char *text);
/* Announces the end of the connection. text: the reason for the user. */
void gpd_control_reply_bye(struct gpd_connection *connection, const char *text);
/* Sends Welcome for a new session, with the devices assigned to the client, described within its
 * quota. connection: with session, ticket, assignment, lanes_max and features set. facts: the
 * worker's part of the message (worker_process.h). opened: the worker's reply for this session,
 * whose size the caller has checked against device_count. known: Welcome.known_images, packed; size
 * 0: none; omitted if the message would be too large. Returns 0; or -ENOMEM if out of memory, or if
 * the session has no ledger entry or the worker does not have its devices; then nothing is sent. */
GP_MUST_CHECK int gpd_control_reply_welcome(const struct gpd_quota *quota,
					    struct gpd_connection *connection,
					    const Gpupool__Welcome *facts,
					    const struct gpd_channel_opened *opened,
					    struct gp_bytes known);
/* Sends the reply to a WindowRequest: another address window, opened->window; size 0: there is no
 * other, and the client keeps its window. facts: the worker's part of Welcome, with `limits`. */
void gpd_control_reply_window(struct gpd_connection *connection, const Gpupool__Welcome *facts,
			      const struct gpd_channel_opened *opened);

#endif /* GPD_CONTROL_REPLY_H */
