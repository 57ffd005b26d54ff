/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/connect/lane_refusal.h"

#include "server/common/ledger/channel.h"
#include "server/worker/session/sessions.h"

#include <stdarg.h>
#include <stdio.h>

void
gpd_lane_refusal_report(const char *peer, bool has_valid_ticket, const char *format, ...)
{
	struct gpd_channel_refused refused = { .has_valid_ticket = has_valid_ticket };
	va_list args;

	(void)snprintf(refused.peer, sizeof(refused.peer), "%s", peer);
	va_start(args, format);
	(void)vsnprintf(refused.reason, sizeof(refused.reason), format, args);
	va_end(args);
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_LANE_REFUSED, 0, 0, &refused,
					     sizeof(refused));
}
