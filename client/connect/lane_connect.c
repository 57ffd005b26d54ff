/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: the first one, which is connected before its ticket is known, and the others. */
#include "base/clock.h"
#include "client/base/config.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/connect/opening.h"
#include "protocol/preamble.h"
#include "protocol/ticket.h"
#include "transport/tls/tls.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Timeout for RDMA if there is an alternative, while the daemon waits for the lane. */
#define TRY_RDMA_MS 3000
/* A daemon may drop a connection that has been silent for somewhat longer than this. */
#define AHEAD_NS 150000000u

/* Starts TLS with a key derived from the ticket, which only the daemon also knows. */
static int
lane_secure(struct gpc_opening *opening, const uint8_t *ticket, unsigned int lane,
	    struct gp_conn **conn_p)
{
	uint8_t key[GP_TICKET_KEY_SIZE];
	int r;

	gp_ticket_derive_key(ticket, (uint16_t)lane, key);
	gpc_stats_wait_start(GPC_WAIT_TLS);
	r = gp_conn_secure_psk(*conn_p, false, key, gpc_opening_limit_ms());
	gpc_stats_wait_stop();
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		return 0;
	r = gpc_opening_fail(opening, r, ": lane %u: %s", lane, gp_conn_error(*conn_p));
	gp_conn_destroy(*conn_p);
	*conn_p = NULL;
	return r;
}

/* Uses the connection made ahead of time, unless it is missing, too old or no longer usable.
 * Returns false if the caller must connect. */
static bool
lane_acquire_ahead(struct gpc_opening *opening, const struct gp_preamble *preamble,
		   struct gp_conn **conn_p)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_conn *conn = opening->ahead;

	if (!conn || gp_now_ns() - opening->ahead_ns > AHEAD_NS || gp_conn_wait(conn, 0) != 0)
		return false;
	gp_preamble_encode(preamble, bytes);
	if (gp_conn_send_preamble(conn, bytes, sizeof(bytes)) != 0)
		return false;
	gp_conn_set_stall_timeout(conn, gpc_config_timeout_ms());
	gp_conn_set_timeout(conn, gpc_config_timeout_ms());
	*conn_p = conn;
	opening->ahead = NULL;
	return true;
}

static int
lane_open(struct gpc_opening *opening, const struct gp_url *url,
	  const uint8_t ticket[GP_TICKET_SIZE], unsigned int lane, struct gp_conn **conn_p)
{
	bool tls = gpc_url_wants_tls(url), shm = strcmp(url->scheme, "shm") == 0;
	enum gp_preamble_kind kind = tls   ? GP_PREAMBLE_LANE_TLS
				     : shm ? GP_PREAMBLE_LANE_SHM
					   : GP_PREAMBLE_LANE;
	struct gp_preamble preamble;
	int r = 0;

	gp_preamble_init(&preamble, kind, (uint16_t)lane);
	if (tls)
		gp_ticket_derive_name(ticket, preamble.ticket);
	else
		memcpy(preamble.ticket, ticket, GP_TICKET_SIZE);
	if (!lane_acquire_ahead(opening, &preamble, conn_p))
		r = gpc_opening_connect(opening, url, &preamble, conn_p);
	return r == 0 && tls ? lane_secure(opening, ticket, lane, conn_p) : r;
}

int
gpc_link_open_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
		   unsigned int lane, struct gp_conn **conn_p, char *error, size_t error_size)
{
	struct gpc_opening opening = {
		.connect_ms = gpc_opening_limit_ms(),
		.error = error,
		.error_size = error_size,
		.ahead_fd = -1,
	};

	gp_url_format(url, opening.text, sizeof(opening.text));
	return lane_open(&opening, url, ticket, lane, conn_p);
}

/* A host name can resolve to several daemons, only one of which has the session. So lanes use the
 * address of the control connection, without another lookup. RDMA may use another address of the
 * host, so there the name is kept. */
static void
url_pin_address(struct gp_url *url, const struct gp_conn *control)
{
	if (strcmp(url->scheme, "tcp") == 0 || strcmp(url->scheme, "tls") == 0)
		(void)gp_conn_peer_address(control, url->host, sizeof(url->host));
}

void
gpc_first_lane_connect_start(struct gpc_opening *opening, const struct gp_conn *control)
{
	/* Its lanes may use another transport. */
	if (gpc_url_wants_rdma(opening->url))
		return;
	opening->ahead_ns = gp_now_ns();
	if (gp_connect_start(control, &opening->ahead_fd) != 0)
		opening->ahead_fd = -1;
}

void
gpc_first_lane_connect_finish(struct gpc_opening *opening, const struct gp_conn *control)
{
	if (opening->ahead_fd < 0)
		return;
	/* An error is ignored here: lane_open() connects again and reports it. */
	if (gp_connect_finish(control, opening->ahead_fd, gpc_opening_limit_ms(),
			      &opening->ahead) != 0)
		opening->ahead = NULL;
	opening->ahead_fd = -1;
}

void
gpc_first_lane_drop(struct gpc_opening *opening)
{
	if (opening->ahead_fd >= 0)
		(void)close(opening->ahead_fd);
	gp_conn_destroy(opening->ahead);
	opening->ahead_fd = -1;
	opening->ahead = NULL;
}

int
gpc_first_lane_open(struct gpc_opening *opening, struct gpc_link *link)
{
	const Gpupool__Welcome *welcome = link->welcome->welcome;
	const struct gp_url *url = opening->url;
	bool either = strcmp(url->scheme, GP_URL_RDMA_OR_TCP) == 0;
	int r;

	opening->connect_ms = either ? TRY_RDMA_MS : gpc_opening_limit_ms();
	link->lanes_url = opening->control;
	if (gpc_url_wants_rdma(url) && welcome->rdma_port) {
		(void)snprintf(link->lanes_url.scheme, sizeof(link->lanes_url.scheme), "rdma");
		link->lanes_url.port = (uint16_t)welcome->rdma_port;
	}
	if (gpc_url_wants_shm(&opening->control) && welcome->features & GP_FEATURE_SHM)
		(void)snprintf(link->lanes_url.scheme, sizeof(link->lanes_url.scheme), "shm");
	url_pin_address(&link->lanes_url, link->control);
	if (gpc_url_wants_rdma(url) && !welcome->rdma_port)
		r = gpc_opening_fail(
			opening, GP_E_UNSUPPORTED,
			": the daemon does not serve RDMA (gpupoold --listen rdma://...)");
	else
		r = lane_open(opening, &link->lanes_url, welcome->ticket.data, 0, &link->lane);
	if (r == 0 || !either)
		return r;
	gpc_log(GPC_LOG_INFO, "%s: no RDMA, the lanes go over %s: %s", opening->text,
		opening->control.scheme, opening->error);
	opening->connect_ms = gpc_opening_limit_ms();
	link->lanes_url = opening->control;
	url_pin_address(&link->lanes_url, link->control);
	return lane_open(opening, &link->lanes_url, welcome->ticket.data, 0, &link->lane);
}
