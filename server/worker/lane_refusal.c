/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/lane_refusal.h"

#include "server/common/ledger/channel.h"
#include "server/worker/worker.h"

#include <stdarg.h>
#include <stdio.h>

void
gpd_stranger_refused(const char *peer, bool knows, const char *format, ...)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_STRANGER, .result = !knows };
	struct gpd_channel_stranger stranger = { 0 };
	va_list args;

	(void)snprintf(stranger.peer, sizeof(stranger.peer), "%s", peer);
	va_start(args, format);
	(void)vsnprintf(stranger.text, sizeof(stranger.text), format, args);
	va_end(args);
	(void)gpd_channel_send(&gpd_worker.channel, &header, &stranger, sizeof(stranger), -1);
}
