/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/connect.h"

#include "client/base/config.h"
#include "client/connect/opening.h"
#include "client/connect/token.h"
#include "client/connect/window.h"

#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Default and upper bound for values of the Welcome. */
#define OUTSTANDING_DEFAULT 1024
#define OUTSTANDING_MAX 65536
#define IMAGE_DEFAULT ((uint64_t)1 << 30)

/* Sets the address for control connections, and for lanes without RDMA. For an RDMA address it is
 * the same host and port, with TLS if this user has any credentials. The daemon's preference is
 * ignored, because a man in the middle could forge it. */
static void
opening_set_control_url(struct gpc_opening *opening)
{
	opening->control = *opening->url;
	if (gpc_url_wants_rdma(opening->url))
		(void)snprintf(opening->control.scheme, sizeof(opening->control.scheme), "%s",
			       gpc_credentials_any(&opening->credentials) ? "tls" : "tcp");
}

/* An empty bitmap means that all calls are supported. */
static void
welcome_parse_calls(const ProtobufCBinaryData *known, uint8_t *unknown)
{
	for (size_t i = 0; known->len > 0 && i < GP_CALL_BITMAP_SIZE; i++)
		unknown[i] = (uint8_t) ~(i < known->len ? known->data[i] : 0);
}

/* Returns 1 for a daemon that does not support several lanes. */
static unsigned int
link_get_lane_count(const struct gpc_link *link)
{
	unsigned int offered = link->welcome->welcome->lanes;

	if (offered < 2 || !gpc_facts_have_call(&link->facts, GP_CALL_gpCopyInLanes) ||
	    !gpc_facts_have_call(&link->facts, GP_CALL_gpCopyOutLanes))
		return 1;
	return offered < link->lanes ? offered : link->lanes;
}

static void
welcome_parse_facts(struct gpc_link *link)
{
	const Gpupool__Welcome *welcome = link->welcome->welcome;
	const Gpupool__Limits *limits = welcome->limits;

	link->facts = (struct gpc_session_facts){
		.session_id = welcome->session_id,
		.window_base = welcome->window->address,
		.window_size = welcome->window->size,
		.host_base = welcome->host ? welcome->host->address : 0,
		.host_size = welcome->host ? welcome->host->size : 0,
		.granularity = limits->heap_granularity,
		.heap_size = limits->heap_size,
		.max_image_size = limits->max_image ? limits->max_image : IMAGE_DEFAULT,
		.max_bulk = limits->max_bulk && limits->max_bulk < GP_CONN_BULK_MAX
				    ? limits->max_bulk
				    : GP_CONN_BULK_MAX,
		.max_deferred = limits->max_held,
		.features = welcome->features & GPC_FEATURES,
		.driver_version =
			welcome->driver_version > 0 && welcome->driver_version < CUDA_VERSION
				? (int)welcome->driver_version
				: CUDA_VERSION,
		.software = welcome->software,
	};
	welcome_parse_calls(&welcome->call_bitmap, link->facts.unknown_calls);
	link->lanes = link_get_lane_count(link);
	link->max_outstanding = limits->max_outstanding == 0 ? OUTSTANDING_DEFAULT
				: limits->max_outstanding > OUTSTANDING_MAX
					? OUTSTANDING_MAX
					: (unsigned int)limits->max_outstanding;
}

/* Reads the credentials and opens the control connection. */
static int
opening_connect(struct gpc_opening *opening, struct gpc_link *link)
{
	int r = gpc_credentials_find(opening->url, &opening->credentials, opening->error,
				     opening->error_size);

	*link = (struct gpc_link){ 0 };
	gp_url_format(opening->url, opening->text, sizeof(opening->text));
	opening_set_control_url(opening);
	if (r == 0)
		r = gpc_token_read(&opening->credentials, &opening->token, &opening->has_token,
				   opening->error, opening->error_size);
	if (r == 0)
		r = gpc_control_connection_open(opening, link);
	explicit_bzero(&opening->token, sizeof(opening->token));
	return r;
}

int
gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
	      const struct gpc_admission_wait *waiting, struct gpc_link *link, char *error,
	      size_t error_size)
{
	struct gpc_opening opening = {
		.url = url,
		.devices = devices,
		.device_count = device_count,
		.waiting = waiting,
		.connect_ms = gpc_opening_limit_ms(),
		.error = error,
		.error_size = error_size,
		.ahead_fd = -1,
	};
	int r = opening_connect(&opening, link);

	if (r == 0) {
		welcome_parse_facts(link);
		r = gpc_link_reserve_window(&opening, link);
	}
	if (r == 0) {
		r = gpc_first_lane_open(&opening, link);
		if (r != 0)
			gpc_window_release(link->facts.window_base, link->facts.window_size);
	}
	gpc_first_lane_drop(&opening);
	gpc_credentials_fini(&opening.credentials);
	if (r != 0)
		gpc_link_fini(link);
	return r != 0 && opening.full ? -EBUSY : r;
}

int
gpc_link_probe(const struct gp_url *url, Gpupool__ControlMessage **message_p, char *error,
	       size_t error_size)
{
	struct gpc_opening opening = {
		.url = url,
		.connect_ms = gpc_opening_limit_ms(),
		.error = error,
		.error_size = error_size,
		.ahead_fd = -1,
		.probe = true,
	};
	struct gpc_link link;
	int r = opening_connect(&opening, &link);

	if (r == 0) {
		*message_p = link.welcome;
		link.welcome = NULL;
	}
	gpc_link_fini(&link);
	gpc_credentials_fini(&opening.credentials);
	return r;
}

void
gpc_link_fini(struct gpc_link *link)
{
	gp_control_free(link->welcome);
	gp_conn_destroy(link->lane);
	gp_conn_destroy(link->control);
	*link = (struct gpc_link){ 0 };
}
