/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/opening.h"

#include "client/base/config.h"
#include "client/base/stats.h"
#include "transport/timeout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
gpc_opening_fail(struct gpc_opening *opening, int r, const char *text, ...)
{
	char what[384];
	va_list arguments;

	va_start(arguments, text);
	(void)vsnprintf(what, sizeof(what), text, arguments);
	va_end(arguments);
	(void)snprintf(opening->error, opening->error_size, "%s%s", opening->text, what);
	return r;
}

int
gpc_opening_limit_ms(void)
{
	unsigned int ms = gpc_config_timeout_ms();

	return ms && ms < GPC_OPENING_MS ? (int)ms : GPC_OPENING_MS;
}

int
gpc_opening_fail_timeout(struct gpc_opening *opening, const struct gp_conn *conn,
			 const char *otherwise)
{
	unsigned int ms = (unsigned int)gpc_opening_limit_ms();
	char time[GP_TIMEOUT_TEXT_MAX];

	gp_timeout_format(ms, time);
	if (gp_conn_is_silent(conn, ms))
		return gpc_opening_fail(opening, GP_E_TIMEOUT, ": no acknowledgment from %s for %s",
					gp_conn_peer(conn), time);
	return gpc_opening_fail(opening, GP_E_TIMEOUT, ": no answer within %s: %s", time,
				otherwise);
}

bool
gpc_url_wants_rdma(const struct gp_url *url)
{
	return strcmp(url->scheme, "rdma") == 0 || strcmp(url->scheme, GP_URL_RDMA_OR_TCP) == 0;
}

bool
gpc_url_wants_shm(const struct gp_url *url)
{
	return strcmp(url->scheme, "unix") == 0 && gpc_config_is_shm_enabled();
}

int
gpc_opening_connect(struct gpc_opening *opening, const struct gp_url *url,
		    const struct gp_preamble *preamble, struct gp_conn **conn_p)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	char why[256] = "";
	int r;

	gp_preamble_encode(preamble, bytes);
	gpc_stats_wait_start(GPC_WAIT_CONNECT);
	r = gp_connect(url, bytes, sizeof(bytes), opening->connect_ms, conn_p, why, sizeof(why));
	gpc_stats_wait_stop();
	if (r != 0) {
		(void)snprintf(opening->error, opening->error_size, "%s", why);
		return r;
	}
	gp_conn_set_stall_timeout(*conn_p, gpc_config_timeout_ms());
	gp_conn_set_timeout(*conn_p, gpc_config_timeout_ms());
	return 0;
}

bool
gpc_url_wants_tls(const struct gp_url *url)
{
	return strcmp(url->scheme, "tls") == 0;
}
