/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing of a session's data lanes. */
#include "client/session/lane.h"

#include "base/lock.h"
#include "base/machine.h"
#include "client/base/log.h"
#include "client/connect/connect.h"
#include "client/guard/guard.h"
#include "client/session/lane_internal.h"
#include "client/session/session_threads.h"
#include "protocol/control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
gpc_lanes_init(struct gpc_session *session)
{
	struct gpc_lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		return -ENOMEM;
	(void)pthread_mutex_init(&lanes->open_lock, NULL);
	(void)pthread_mutex_init(&lanes->lock, NULL);
	gp_cond_init(&lanes->work);
	gp_cond_init(&lanes->changed);
	session->lanes = lanes;
	return 0;
}

void
gpc_lanes_fini(struct gpc_session *session)
{
	struct gpc_lanes *lanes = session->lanes;

	if (!lanes)
		return;
	for (unsigned int i = 0; i < lanes->count; i++) {
		gp_conn_destroy(lanes->lanes[i].conn);
		free(lanes->lanes[i].packed_out);
		free(lanes->lanes[i].packed_in);
	}
	(void)pthread_cond_destroy(&lanes->work);
	(void)pthread_cond_destroy(&lanes->changed);
	(void)pthread_mutex_destroy(&lanes->lock);
	(void)pthread_mutex_destroy(&lanes->open_lock);
	free(lanes);
	session->lanes = NULL;
}

void
gpc_lanes_configure(struct gpc_session *session, const struct gpc_lanes_config *config)
{
	session->lanes->config = *config;
	atomic_store(&session->round_trip_ns, config->round_trip_ns);
}

void
gpc_lanes_stop(struct gpc_session *session)
{
	struct gpc_lanes *lanes = session->lanes;
	struct gpc_outgoing_copy *next;

	(void)pthread_mutex_lock(&lanes->lock);
	lanes->over = true;
	for (unsigned int i = 0; i < lanes->count; i++) {
		if (lanes->lanes[i].conn)
			gp_conn_shutdown(lanes->lanes[i].conn);
	}
	for (struct gpc_outgoing_copy *outgoing_copy = lanes->outgoing; outgoing_copy;
	     outgoing_copy = next) {
		next = outgoing_copy->next;
		if (outgoing_copy->busy == 0)
			gpc_outgoing_copy_drop_locked(lanes, outgoing_copy);
	}
	(void)pthread_cond_broadcast(&lanes->work);
	(void)pthread_cond_broadcast(&lanes->changed);
	(void)pthread_mutex_unlock(&lanes->lock);
}

void
gpc_lanes_abandon(struct gpc_session *session)
{
	const struct gpc_lanes *lanes = session->lanes;

	for (unsigned int i = 0; i < lanes->count; i++) {
		if (lanes->lanes[i].conn)
			gp_conn_abandon(lanes->lanes[i].conn);
	}
}

bool
gpc_lanes_drain(struct gpc_session *session, uint64_t deadline)
{
	struct gpc_lanes *lanes = session->lanes;
	bool in_time = true;

	(void)pthread_mutex_lock(&lanes->lock);
	while (lanes->outgoing && !lanes->over && in_time)
		in_time = gp_cond_wait_until(&lanes->changed, &lanes->lock, deadline);
	(void)pthread_mutex_unlock(&lanes->lock);
	return in_time;
}

void
gpc_lane_fail(struct gpc_lane *lane, int r)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "data lane %u: ", lane->number);
	gpc_session_lost_on(lane->session, lane->conn, name, r);
}

/* Counts one more lane as connected or failed. Returns whether the lane is usable. */
static bool
lane_finish_connect(struct gpc_lane *lane, struct gp_conn *conn)
{
	struct gpc_lanes *lanes = lane->session->lanes;
	unsigned int open = 0;

	(void)pthread_mutex_lock(&lanes->lock);
	if (!lanes->over) {
		lane->conn = conn;
		conn = NULL;
	}
	for (unsigned int i = 0; i < lanes->count; i++)
		open += lanes->lanes[i].conn != NULL;
	if (--lanes->connecting == 0) {
		gpc_log(GPC_LOG_INFO, "%s: %u data lanes", gp_conn_peer(lane->session->lane), open);
		atomic_store(&lanes->state, open > 0 ? (int)GPC_LANES_OPEN : (int)GPC_LANES_NONE);
		(void)pthread_cond_broadcast(&lanes->changed);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	gp_conn_destroy(conn);
	return lane->conn != NULL;
}

static void
lane_connect(struct gpc_lane *lane)
{
	struct gpc_session *session = lane->session;
	const struct gpc_lanes_config *config = &session->lanes->config;
	struct gp_conn *conn = NULL;
	char error[640];

	if (gpc_link_open_lane(&config->url, config->ticket, lane->number, &conn, error,
			       sizeof(error)) != 0) {
		conn = NULL;
		gpc_log(GPC_LOG_ERROR, "data lane %u: %s", lane->number, error);
	}
	lane->silence = (struct gpc_silence_lane){ .session = session, .number = lane->number };
	if (conn)
		gpc_silence_watch(conn, &lane->silence);
	lane->pack.mode = GP_PACK_OFF;
	if (conn && session->facts.features & GP_FEATURE_LZ4 && !gp_conn_get_device(conn))
		lane->pack.mode = config->compression;
	/* The daemon expects all connected lanes to be served, so the session cannot continue
	 * without their threads. */
	if (lane_finish_connect(lane, conn) &&
	    gpc_thread_start(session, gpc_lane_send_main, lane, "gpupool-laneout") != 0)
		gpc_session_fail(session, CUDA_ERROR_OUT_OF_MEMORY, "no thread for a data lane");
}

static void *
lane_receive(void *arg)
{
	struct gpc_lane *lane = arg;
	struct gpc_session *session = lane->session;
	int r = 0;

	lane_connect(lane);
	while (lane->conn && r == 0)
		r = gpc_lane_receive_chunk(lane);
	if (lane->conn)
		gpc_lane_fail(lane, r);
	gpc_thread_ended(session);
	return NULL;
}

static bool
config_is_rdma(const struct gpc_lanes_config *config)
{
	return strcmp(config->url.scheme, "rdma") == 0;
}

/* Returns 0 if the round-trip time is unknown, and for RDMA, whose number of lanes and copy sizes
 * are those of a short link. */
static uint64_t
session_get_round_trip(const struct gpc_session *session)
{
	return config_is_rdma(&session->lanes->config)
		       ? 0
		       : atomic_load_explicit(&session->round_trip_ns, memory_order_relaxed);
}

static unsigned int
session_get_lane_count(const struct gpc_session *session)
{
	const struct gpc_lanes_config *config = &session->lanes->config;

	if (config->exact)
		return config->max - 1;
	return gpc_lane_count(config->max - 1, gp_machine_processors(""),
			      session_get_round_trip(session), config_is_rdma(config));
}

/* Called under open_lock, so that only one thread opens the lanes. All lanes connect at once. */
static void
lanes_open(struct gpc_session *session)
{
	struct gpc_lanes *lanes = session->lanes;
	unsigned int count = session_get_lane_count(session);

	(void)pthread_mutex_lock(&lanes->lock);
	lanes->count = lanes->connecting = count;
	for (unsigned int i = 0; i < count; i++)
		lanes->lanes[i] = (struct gpc_lane){ .session = session, .number = i + 1 };
	atomic_store(&lanes->state, count > 0 ? (int)GPC_LANES_OPENING : (int)GPC_LANES_NONE);
	(void)pthread_mutex_unlock(&lanes->lock);
	for (unsigned int i = 0; i < count; i++) {
		if (gpc_thread_start(session, lane_receive, &lanes->lanes[i], "gpupool-lanein") !=
		    0)
			(void)lane_finish_connect(&lanes->lanes[i], NULL);
	}
}

static bool
lanes_await_open(struct gpc_lanes *lanes)
{
	gpc_guard_block();
	(void)pthread_mutex_lock(&lanes->lock);
	while (atomic_load(&lanes->state) == GPC_LANES_OPENING && !lanes->over)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
	return atomic_load(&lanes->state) == GPC_LANES_OPEN;
}

bool
gpc_lanes_open_for_copy(struct gpc_session *session, uint64_t size, bool later)
{
	struct gpc_lanes *lanes = session->lanes;

	if (size < gpc_lane_copy_min(later) || lanes->config.max < 2)
		return false;
	if (atomic_load(&lanes->state) == GPC_LANES_CLOSED) {
		(void)pthread_mutex_lock(&lanes->open_lock);
		if (atomic_load(&lanes->state) == GPC_LANES_CLOSED)
			lanes_open(session);
		(void)pthread_mutex_unlock(&lanes->open_lock);
	}
	return atomic_load(&lanes->state) == GPC_LANES_OPENING
		       ? lanes_await_open(lanes)
		       : atomic_load(&lanes->state) == GPC_LANES_OPEN;
}
