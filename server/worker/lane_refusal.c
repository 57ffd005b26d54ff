/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/lane_refusal.h"

#include "server/common/ledger/channel.h"
#include "server/worker/worker.h"

#include <stdarg.h>
#include <stdio.h>

void
gpd_lane_refusal_report(const char *peer, bool knows, const char *format, ...)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_LANE_REFUSED, .result = !knows };
	struct gpd_channel_lane_refused refused = { 0 };
	va_list args;

	(void)snprintf(refused.peer, sizeof(refused.peer), "%s", peer);
	va_start(args, format);
	(void)vsnprintf(refused.text, sizeof(refused.text), format, args);
	va_end(args);
	(void)gpd_channel_send(&gpd_worker.channel, &header, &refused, sizeof(refused), -1);
}
