/* SPDX-License-Identifier: Apache-2.0 */
#include "client/wire/lane.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/connect/connect.h"
#include "client/wire/session_inside.h"
#include "client/wire/session_threads.h"
#include "gp_calls.h"
#include "protocol/control.h"
#include "protocol/frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copies that are not sent: while the last chunks of one are on their way the lanes begin the next
 * one, and other threads' calls get in between. */
#define UNSENT_MAX 2

enum state {
	CLOSED,
	OPENING, /* their threads connect them */
	OPEN,
	NONE, /* there are none, and there will be none */
};

struct lane {
	struct gpc_session *session;
	struct gp_conn *conn;
	unsigned int number;
	/* Of the thread that sends, and of the one that receives: room for a compressed chunk, NULL
	 * before the first one. */
	struct gp_pack pack;
	uint8_t *packed_out, *packed_in;
};

/* A copy to the device, until it is sent. */
struct outgoing {
	struct outgoing *next;
	const uint8_t *memory;
	uint64_t size, at;  /* at: the next chunk */
	uint64_t step;      /* from one chunk's beginning to the next */
	unsigned int busy;  /* chunks that are being sent */
	unsigned int *wait; /* less one when it is sent; or NULL */
	uint32_t copy;
};

struct gpc_lanes {
	struct gpc_lanes_source source;
	pthread_mutex_t open_lock;
	atomic_int state;
	pthread_mutex_t lock;
	pthread_cond_t work;    /* for who sends */
	pthread_cond_t changed; /* for who waits for sends and receives */
	unsigned int count, connecting;
	struct lane lanes[GP_LANES_MAX]; /* of those that could not be had conn is NULL */
	bool over;
	struct outgoing *outgoing; /* in the order of their records */
	atomic_uint unsent;        /* how many */
	uint32_t last_out;         /* under the sender's lock */
	struct gpc_lane_in *incoming;
	uint32_t last_in;
};

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
gpc_lanes_allow(struct gpc_session *session, const struct gpc_lanes_source *source)
{
	session->lanes->source = *source;
}

/* The copy is sent, or nobody wants it to be. */
static void
drop_locked(struct gpc_lanes *lanes, struct outgoing *outgoing) GP_LOCKED(lanes->lock)
{
	struct outgoing **place = &lanes->outgoing;

	while (*place != outgoing)
		place = &(*place)->next;
	*place = outgoing->next;
	atomic_fetch_sub(&lanes->unsent, 1);
	if (outgoing->wait)
		--*outgoing->wait;
	free(outgoing);
	(void)pthread_cond_broadcast(&lanes->changed);
}

void
gpc_lanes_end(struct gpc_session *session)
{
	struct gpc_lanes *lanes = session->lanes;
	struct outgoing *next;

	(void)pthread_mutex_lock(&lanes->lock);
	lanes->over = true;
	for (unsigned int i = 0; i < lanes->count; i++) {
		if (lanes->lanes[i].conn)
			gp_conn_shutdown(lanes->lanes[i].conn);
	}
	for (struct outgoing *outgoing = lanes->outgoing; outgoing; outgoing = next) {
		next = outgoing->next;
		if (outgoing->busy == 0)
			drop_locked(lanes, outgoing);
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

static void
fail(struct lane *lane, int r)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "data lane %u: ", lane->number);
	gpc_session_lost_on(lane->session, lane->conn, name, r);
}

/* Waits for a chunk to send; false: the session is over. */
static bool
next_chunk(struct gpc_lanes *lanes, struct outgoing **outgoing_p, struct gp_chunk *chunk)
{
	struct outgoing *outgoing = NULL;

	(void)pthread_mutex_lock(&lanes->lock);
	while (!lanes->over) {
		outgoing = lanes->outgoing;
		while (outgoing && outgoing->at == outgoing->size)
			outgoing = outgoing->next;
		if (outgoing)
			break;
		(void)pthread_cond_wait(&lanes->work, &lanes->lock);
	}
	if (lanes->over)
		outgoing = NULL;
	if (outgoing) {
		*chunk = (struct gp_chunk){
			.copy = outgoing->copy,
			.offset = outgoing->at,
			.size = gp_chunk_expected(outgoing->size, outgoing->step, outgoing->at),
		};
		outgoing->at += chunk->size;
		outgoing->busy++;
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	*outgoing_p = outgoing;
	return outgoing != NULL;
}

static void
chunk_sent(struct gpc_lanes *lanes, struct outgoing *outgoing)
{
	(void)pthread_mutex_lock(&lanes->lock);
	outgoing->busy--;
	if (outgoing->busy == 0 && (outgoing->at == outgoing->size || lanes->over))
		drop_locked(lanes, outgoing);
	(void)pthread_mutex_unlock(&lanes->lock);
}

/* Into the lane's own room, if that is worth it and there is some. */
static void
pack_chunk(struct lane *lane, struct gp_chunk *chunk, struct iovec *bulk)
{
	if (!gp_pack_wants(&lane->pack, chunk->size))
		return;
	if (!lane->packed_out)
		lane->packed_out = malloc(GP_CHUNK_MAX);
	if (!lane->packed_out)
		return;
	chunk->packed =
		(uint32_t)gp_pack_try(&lane->pack, bulk->iov_base, chunk->size, lane->packed_out);
	if (chunk->packed)
		*bulk = (struct iovec){ lane->packed_out, chunk->packed };
}

static int
send_chunk(struct lane *lane, const struct outgoing *outgoing, struct gp_chunk *chunk)
{
	uint8_t header[GP_CHUNK_SIZE];
	struct iovec data = { header, sizeof(header) };
	struct iovec bulk = { (void *)(outgoing->memory + chunk->offset), chunk->size };
	uint64_t begun;
	int r;

	pack_chunk(lane, chunk, &bulk);
	gp_chunk_encode(chunk, header);
	gpc_stats_sent(sizeof(header), &bulk, 1);
	begun = gp_now_ns();
	r = gp_conn_send(lane->conn, &data, 1, &bulk, 1);
	gp_pack_sent(&lane->pack, bulk.iov_len, gp_now_ns() - begun);
	return r;
}

static void *
send_main(void *arg)
{
	struct lane *lane = arg;
	struct gpc_session *session = lane->session;
	struct gpc_lanes *lanes = session->lanes;
	struct outgoing *outgoing;
	struct gp_chunk chunk;
	int r = 0;

	while (r == 0 && next_chunk(lanes, &outgoing, &chunk)) {
		r = send_chunk(lane, outgoing, &chunk);
		chunk_sent(lanes, outgoing);
	}
	if (r != 0)
		fail(lane, r);
	gpc_thread_ended(session);
	return NULL;
}

static struct gpc_lane_in *
find_in(struct gpc_lanes *lanes, uint32_t copy) GP_LOCKED(lanes->lock)
{
	struct gpc_lane_in *in = lanes->incoming;

	while (in && in->copy != copy)
		in = in->next;
	return in;
}

static bool
may_be_packed(const struct lane *lane)
{
	return lane->session->facts.features & GP_FEATURE_LZ4 && !gp_conn_device(lane->conn);
}

static int
receive_bytes(struct lane *lane, const struct gp_chunk *chunk, void *memory)
{
	int r;

	if (!chunk->packed)
		return gp_conn_recv_bulk(lane->conn, memory, chunk->size);
	if (!lane->packed_in)
		lane->packed_in = malloc(GP_CHUNK_MAX);
	if (!lane->packed_in)
		return gp_conn_fail(lane->conn, -ENOMEM, "no memory for a compressed chunk");
	r = gp_conn_recv_bulk(lane->conn, lane->packed_in, chunk->packed);
	if (r == 0 && gp_unpack(lane->packed_in, chunk->packed, memory, chunk->size) != 0)
		r = gp_conn_fail(lane->conn, -EPROTO, "malformed compressed chunk");
	return r;
}

static int
receive_chunk(struct lane *lane)
{
	struct gpc_lanes *lanes = lane->session->lanes;
	struct gpc_lane_in *in = NULL;
	struct gp_message message;
	struct gp_chunk chunk;
	int r = gp_conn_recv(lane->conn, &message);

	if (r != 0)
		return r;
	gpc_stats_received(message.size + message.bulk_size);
	if (gp_chunk_decode(&chunk, message.data, message.size, message.bulk_size) != 0 ||
	    (chunk.packed && !may_be_packed(lane)))
		return gp_conn_fail(lane->conn, -EPROTO, "malformed chunk");
	(void)pthread_mutex_lock(&lanes->lock);
	if (!lanes->over)
		in = find_in(lanes, chunk.copy);
	if (in && (chunk.offset > in->size || chunk.size > in->size - chunk.offset))
		in = NULL;
	if (in)
		in->busy++;
	(void)pthread_mutex_unlock(&lanes->lock);
	if (!in)
		return gp_conn_fail(lane->conn, -EPROTO, "a chunk that was not asked for");
	r = receive_bytes(lane, &chunk, in->memory + chunk.offset);
	(void)pthread_mutex_lock(&lanes->lock);
	in->busy--;
	if (r == 0)
		in->received += chunk.size;
	(void)pthread_cond_broadcast(&lanes->changed);
	(void)pthread_mutex_unlock(&lanes->lock);
	return r;
}

/* One lane more is there, or cannot be had.  Whether it is there. */
static bool
settle_lane(struct lane *lane, struct gp_conn *conn)
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
		atomic_store(&lanes->state, open > 0 ? (int)OPEN : (int)NONE);
		(void)pthread_cond_broadcast(&lanes->changed);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	gp_conn_destroy(conn);
	return lane->conn != NULL;
}

static void
connect_lane(struct lane *lane)
{
	struct gpc_session *session = lane->session;
	const struct gpc_lanes_source *source = &session->lanes->source;
	struct gp_conn *conn = NULL;
	char error[640];

	if (gpc_link_lane(&source->url, source->ticket, lane->number, &conn, error,
			  sizeof(error)) != 0) {
		conn = NULL;
		gpc_log(GPC_LOG_ERROR, "data lane %u: %s", lane->number, error);
	}
	lane->pack.mode = GP_PACK_OFF;
	if (conn && session->facts.features & GP_FEATURE_LZ4 && !gp_conn_device(conn))
		lane->pack.mode = source->compression;
	/* Without threads for them the session is not what the daemon takes it for. */
	if (settle_lane(lane, conn) &&
	    gpc_thread_start(session, send_main, lane, "gpupool-lane-out") != 0)
		gpc_session_fail(session, CUDA_ERROR_OUT_OF_MEMORY, "no thread for a data lane");
}

static void *
receive_main(void *arg)
{
	struct lane *lane = arg;
	struct gpc_session *session = lane->session;
	int r = 0;

	connect_lane(lane);
	while (lane->conn && r == 0)
		r = receive_chunk(lane);
	if (lane->conn)
		fail(lane, r);
	gpc_thread_ended(session);
	return NULL;
}

static bool
is_rdma(const struct gpc_lanes_source *source)
{
	return strcmp(source->url.scheme, "rdma") == 0;
}

/* 0: not known, or RDMA, whose lanes and copies are those of a short link. */
static uint64_t
round_trip_of(const struct gpc_session *session)
{
	if (is_rdma(&session->lanes->source))
		return 0;
	return atomic_load_explicit(&session->round_trip_ns, memory_order_relaxed);
}

static unsigned int
count_lanes(const struct gpc_session *session)
{
	const struct gpc_lanes_source *source = &session->lanes->source;

	if (source->exact)
		return source->max - 1;
	return gpc_lane_count(source->max - 1, gpc_lane_cores(), round_trip_of(session),
			      is_rdma(source));
}

/* With the lock that only one thread opens them.  All connect at once. */
static void
open_lanes(struct gpc_session *session)
{
	struct gpc_lanes *lanes = session->lanes;
	unsigned int count = count_lanes(session);

	(void)pthread_mutex_lock(&lanes->lock);
	lanes->count = lanes->connecting = count;
	for (unsigned int i = 0; i < count; i++)
		lanes->lanes[i] = (struct lane){ .session = session, .number = i + 1 };
	atomic_store(&lanes->state, count > 0 ? (int)OPENING : (int)NONE);
	(void)pthread_mutex_unlock(&lanes->lock);
	for (unsigned int i = 0; i < count; i++) {
		if (gpc_thread_start(session, receive_main, &lanes->lanes[i], "gpupool-lane-in") !=
		    0)
			(void)settle_lane(&lanes->lanes[i], NULL);
	}
}

static bool
await_lanes(struct gpc_lanes *lanes)
{
	(void)pthread_mutex_lock(&lanes->lock);
	while (atomic_load(&lanes->state) == OPENING && !lanes->over)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
	return atomic_load(&lanes->state) == OPEN;
}

bool
gpc_lanes_want(struct gpc_session *session, uint64_t size)
{
	struct gpc_lanes *lanes = session->lanes;
	uint64_t round_trip = round_trip_of(session);

	if (size < gpc_lane_copy_min(round_trip) || lanes->source.max < 2)
		return false;
	if (atomic_load(&lanes->state) == CLOSED) {
		(void)pthread_mutex_lock(&lanes->open_lock);
		if (atomic_load(&lanes->state) == CLOSED)
			open_lanes(session);
		(void)pthread_mutex_unlock(&lanes->open_lock);
	}
	if (atomic_load(&lanes->state) == OPENING)
		return await_lanes(lanes);
	return atomic_load(&lanes->state) == OPEN;
}

/* With the sender's lock, so that copies are in the order of their records.  Whether the session is
 * not over. */
static bool
enqueue(struct gpc_lanes *lanes, struct outgoing *outgoing)
{
	struct outgoing **end = &lanes->outgoing;
	bool over;

	(void)pthread_mutex_lock(&lanes->lock);
	over = lanes->over;
	if (!over) {
		outgoing->copy = ++lanes->last_out;
		while (*end)
			end = &(*end)->next;
		*end = outgoing;
		if (outgoing->wait)
			++*outgoing->wait;
		atomic_fetch_add(&lanes->unsent, 1);
		(void)pthread_cond_broadcast(&lanes->work);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	return !over;
}

static void
wait_for_room(struct gpc_lanes *lanes)
{
	if (atomic_load(&lanes->unsent) < UNSENT_MAX)
		return;
	(void)pthread_mutex_lock(&lanes->lock);
	while (atomic_load(&lanes->unsent) >= UNSENT_MAX && !lanes->over)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
}

CUresult
gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst, const void *memory,
	       uint64_t size, unsigned int flags, unsigned int *wait) GP_LOCK_UNCHECKED
{
	struct gpc_session *session = scope->session;
	struct gp_args_gpCopyInLanes args = {
		.stream = stream,
		.dst = dst,
		.size = size,
		.flags = flags,
	};
	struct outgoing *outgoing = calloc(1, sizeof(*outgoing));
	struct gpc_call call;
	CUresult result;

	if (!outgoing)
		return CUDA_ERROR_OUT_OF_MEMORY;
	outgoing->memory = memory;
	outgoing->size = size;
	outgoing->step = gp_chunk_step(size, session->facts.features & GP_FEATURE_SPREAD);
	outgoing->wait = wait;
	wait_for_room(session->lanes);
	result = gpc_call_begin(&call, scope, GP_CALL_gpCopyInLanes,
				gp_args_gpCopyInLanes_size(&args), stream);
	if (result != CUDA_SUCCESS) {
		free(outgoing);
		return result;
	}
	/* From here on this thread has the sender's lock. */
	if (session->functions.unanswered > 0)
		result = CUDA_ERROR_NOT_READY;
	else if (!enqueue(session->lanes, outgoing))
		result = CUDA_ERROR_SYSTEM_NOT_READY;
	if (result != CUDA_SUCCESS) {
		(void)pthread_mutex_unlock(&session->sender.lock);
		free(outgoing);
		return result;
	}
	args.copy = session->lanes->last_out;
	gp_args_gpCopyInLanes_encode(&call.enc, &args);
	return gpc_call_post(&call, NULL, 0);
}

CUresult
gpc_lanes_wait_sent(struct gpc_session *session, const unsigned int *wait)
{
	struct gpc_lanes *lanes = session->lanes;

	(void)pthread_mutex_lock(&lanes->lock);
	while (*wait > 0)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
	return gpc_session_status(session);
}

static bool
is_being_sent(const struct gpc_lanes *lanes, uintptr_t base, uint64_t size) GP_LOCKED(lanes->lock)
{
	for (const struct outgoing *o = lanes->outgoing; o; o = o->next) {
		uintptr_t start = (uintptr_t)o->memory;

		if (start < base + size && base < start + o->size)
			return true;
	}
	return false;
}

void
gpc_lanes_settle(const void *base, uint64_t size)
{
	for (int i = 0; i < gpc_session_count(); i++) {
		struct gpc_lanes *lanes = gpc_session_at(i)->lanes;

		if (atomic_load(&lanes->unsent) == 0)
			continue;
		(void)pthread_mutex_lock(&lanes->lock);
		while (is_being_sent(lanes, (uintptr_t)base, size))
			(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
		(void)pthread_mutex_unlock(&lanes->lock);
	}
}

void
gpc_lanes_expect(struct gpc_session *session, struct gpc_lane_in *in)
{
	struct gpc_lanes *lanes = session->lanes;

	(void)pthread_mutex_lock(&lanes->lock);
	do
		in->copy = ++lanes->last_in;
	while (find_in(lanes, in->copy));
	in->next = lanes->incoming;
	lanes->incoming = in;
	(void)pthread_mutex_unlock(&lanes->lock);
}

void
gpc_lanes_finish(struct gpc_session *session, struct gpc_lane_in *in, uint64_t sent)
{
	struct gpc_lanes *lanes = session->lanes;
	struct gpc_lane_in **place = &lanes->incoming;

	(void)pthread_mutex_lock(&lanes->lock);
	while ((in->received < sent && !lanes->over) || in->busy > 0)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	while (*place != in)
		place = &(*place)->next;
	*place = in->next;
	(void)pthread_mutex_unlock(&lanes->lock);
}
