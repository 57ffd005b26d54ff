/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections whose peer is behind with reading, so that sent bytes wait for credits, and in which
 * no thread is: one thread of the process looks after all of them.  It ends when there are none.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "transport/rdma/rdma.h"

#include <time.h>

#define NAP_MIN_NS 200000
#define NAP_MAX_NS 5000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_rdma_conn *all GP_GUARDED_BY(lock);
static bool running GP_GUARDED_BY(lock);

/* The peer need not take all at once, but some of it in the time of gp_conn_set_unread(). */
static void
check_taken(struct gp_rdma_conn *conn)
{
	if (conn->courier_deadline != 0 && conn->courier_post == conn->tx_post) {
		gp_rdma_check_taken(conn, conn->courier_deadline);
		return;
	}
	conn->courier_post = conn->tx_post;
	conn->courier_deadline = gp_rdma_taken_deadline(conn);
}

/* Whether nothing waits any more. */
static bool
serve(struct gp_rdma_conn *conn)
{
	bool done;

	pthread_mutex_lock(&conn->lock);
	gp_rdma_drain(conn);
	gp_rdma_flush(conn);
	if (conn->tx_post != conn->tx_fill)
		check_taken(conn);
	done = conn->tx_post == conn->tx_fill || conn->down;
	if (done)
		conn->courier_deadline = 0;
	pthread_mutex_unlock(&conn->lock);
	return done;
}

static void *
courier_main(void *arg)
{
	uint64_t nap = NAP_MIN_NS;

	pthread_mutex_lock(&lock);
	while (all) {
		struct gp_rdma_conn **place = &all;

		while (*place) {
			struct gp_rdma_conn *conn = *place;

			if (serve(conn)) {
				*place = conn->next_courier;
				conn->with_courier = false;
			} else {
				place = &conn->next_courier;
			}
		}
		pthread_mutex_unlock(&lock);
		gp_nap(nap);
		if (nap < NAP_MAX_NS)
			nap += nap / 4;
		pthread_mutex_lock(&lock);
	}
	running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

void
gp_rdma_courier_add(struct gp_rdma_conn *conn)
{
	pthread_mutex_lock(&lock);
	if (!conn->with_courier) {
		conn->with_courier = true;
		conn->next_courier = all;
		all = conn;
	}
	if (!running)
		running = gp_thread_start("gpupool-rdma", 0, courier_main, NULL) == 0;
	pthread_mutex_unlock(&lock);
}

void
gp_rdma_courier_remove(struct gp_rdma_conn *conn)
{
	struct gp_rdma_conn **place = &all;

	pthread_mutex_lock(&lock);
	while (*place && *place != conn)
		place = &(*place)->next_courier;
	if (*place)
		*place = conn->next_courier;
	conn->with_courier = false;
	pthread_mutex_unlock(&lock);
}
