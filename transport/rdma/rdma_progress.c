/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress thread for connections whose peer reads slowly, so that sent bytes wait for credits
 * while no thread is in a call on the connection. A single thread per process serves all of them;
 * it ends when there are none.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "transport/rdma/rdma.h"

#define NAP_MIN_NS 200000
#define NAP_MAX_NS 5000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_rdma_conn *progress_conns GP_GUARDED_BY(lock);
static bool is_running GP_GUARDED_BY(lock);

/* The peer must consume part of the bytes, not all of them, within the time of
 * gp_conn_set_send_timeout(). */
static void
conn_check_deadline(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	if (conn->progress_deadline != 0 && conn->progress_post == conn->tx_post) {
		gp_rdma_check_send_deadline(conn, conn->progress_deadline);
		return;
	}
	conn->progress_post = conn->tx_post;
	conn->progress_deadline = gp_rdma_get_send_deadline(conn);
}

/* Returns whether nothing is left to send. */
static bool
conn_progress(struct gp_rdma_conn *conn)
{
	bool done;

	pthread_mutex_lock(&conn->lock);
	gp_rdma_poll_cq(conn);
	gp_rdma_flush(conn);
	if (conn->tx_post != conn->tx_fill)
		conn_check_deadline(conn);
	done = conn->tx_post == conn->tx_fill || conn->down;
	if (done)
		conn->progress_deadline = 0;
	pthread_mutex_unlock(&conn->lock);
	return done;
}

static void *
progress_run(void *arg)
{
	uint64_t nap = NAP_MIN_NS;

	pthread_mutex_lock(&lock);
	while (progress_conns) {
		struct gp_rdma_conn **place = &progress_conns;

		while (*place) {
			struct gp_rdma_conn *conn = *place;

			if (conn_progress(conn)) {
				*place = conn->progress_next;
				conn->is_in_progress = false;
			} else {
				place = &conn->progress_next;
			}
		}
		pthread_mutex_unlock(&lock);
		gp_sleep_ns(nap);
		if (nap < NAP_MAX_NS)
			nap += nap / 4;
		pthread_mutex_lock(&lock);
	}
	is_running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

void
gp_rdma_progress_add(struct gp_rdma_conn *conn)
{
	pthread_mutex_lock(&lock);
	if (!conn->is_in_progress) {
		conn->is_in_progress = true;
		conn->progress_next = progress_conns;
		progress_conns = conn;
	}
	if (!is_running)
		is_running = gp_thread_start("gpupool-rdma", 0, progress_run, NULL) == 0;
	pthread_mutex_unlock(&lock);
}

void
gp_rdma_progress_remove(struct gp_rdma_conn *conn)
{
	struct gp_rdma_conn **place = &progress_conns;

	pthread_mutex_lock(&lock);
	while (*place && *place != conn)
		place = &(*place)->progress_next;
	if (*place)
		*place = conn->progress_next;
	conn->is_in_progress = false;
	pthread_mutex_unlock(&lock);
}
