/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/heartbeat.h"

#include "server/common/ledger/channel.h"

#include <stddef.h>

bool
gpd_heartbeat_check(struct gpd_heartbeat *heartbeat, struct gpd_channel *channel, int64_t now_ms)
{
	static const struct gpd_channel_header ping = { .type = GPD_CHANNEL_PING };

	if (heartbeat->pinged_ms) {
		if (heartbeat->hangs || now_ms - heartbeat->pinged_ms < GPD_HEARTBEAT_DUE_MS)
			return false;
		heartbeat->hangs = true;
		return true;
	}
	/* A closed channel is detected by its reader. */
	if (now_ms >= heartbeat->next_ms && gpd_channel_post(channel, &ping, NULL, 0, -1) == 0)
		heartbeat->pinged_ms = now_ms;
	return false;
}

int64_t
gpd_heartbeat_answered(struct gpd_heartbeat *heartbeat, int64_t now_ms)
{
	int64_t silent_ms = heartbeat->hangs ? now_ms - heartbeat->pinged_ms : 0;

	*heartbeat = (struct gpd_heartbeat){ .next_ms = now_ms + GPD_HEARTBEAT_MS };
	return silent_ms;
}

void
gpd_heartbeat_extend(struct gpd_heartbeat *heartbeat, int64_t ms)
{
	if (heartbeat->pinged_ms)
		heartbeat->pinged_ms += ms;
}
