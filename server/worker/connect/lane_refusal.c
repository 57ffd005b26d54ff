/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/connect/lane_refusal.h"

#include "server/common/base/client_address_name.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/session/sessions.h"

#include <stdarg.h>
#include <stdio.h>

void
gpd_lane_refusal_report(const char *peer, bool has_valid_ticket, const char *format, ...)
{
	char address[GPD_CLIENT_ADDRESS_NAME_MAX], text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!has_valid_ticket)
		gpd_ledger_count(&gpd_sessions.ledger->lanes_refused, 1);
	gpd_client_address_name(peer, NULL, address);
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, address), GPD_LOG_WARNING,
			   "%s: %s", peer, text);
}
