/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of a lane, in a thread of the test: takes one record after the other, notes it
 * down, and answers by the test's function.
 */
#ifndef FAKE_DAEMON_H
#define FAKE_DAEMON_H

#include "client/wire/session.h"
#include "protocol/frame.h"
#include "transport/transport.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_DAEMON_RECORDS_MAX 65536

struct fake_daemon_record {
	struct gp_header header;
	uint64_t first_word; /* of the fields */
	size_t bulk_size;
};

struct fake_daemon {
	struct gp_conn *conn;
	pthread_t thread;
	/* Called for each record; not 0 ends the thread and closes the connection. */
	int (*answer)(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size);
	void *arg;
	sem_t proceed;    /* for functions that wait for the test */
	atomic_bool hold; /* does not receive while it is set */
	struct fake_daemon_record *records;
	atomic_size_t count;
	atomic_size_t messages;
	pthread_mutex_t send_lock;
};

/* A session over a new connection, which becomes that of gpc_session_get(), and its daemon. */
void fake_daemon_start(struct fake_daemon *daemon, const char *scheme, unsigned int max_outstanding,
		       struct gpc_session **session_p);
/* Closes and frees both. */
void fake_daemon_stop(struct fake_daemon *daemon, struct gpc_session *session);

/* A pair of connected ends. */
void fake_daemon_connection(const char *scheme, struct gp_conn **near_p, struct gp_conn **far_p);

/* One message of one record. */
void fake_daemon_send(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size, const void *bulk, size_t bulk_size);
void fake_daemon_reply(struct fake_daemon *daemon, const struct gp_header *to, CUresult result,
		       const void *fields, size_t size);
void fake_daemon_note_error(struct fake_daemon *daemon, CUresult result, bool sticky);
void fake_daemon_note_error_of(struct fake_daemon *daemon, CUresult result, bool sticky,
			       uint16_t call);
void fake_daemon_note_print(struct fake_daemon *daemon, const char *text);
void fake_daemon_note_data(struct fake_daemon *daemon, uint32_t request, uint64_t offset,
			   const void *data, size_t size);

/* Answers what waits with success and zeros, as many bytes as the call's reply has. */
int fake_daemon_answer(struct fake_daemon *daemon, const struct gp_header *header,
		       const void *fields, size_t size);

/* How many of these it has got, once it has got all that was posted before. */
size_t fake_daemon_received(struct fake_daemon *daemon, uint16_t call);
/* From now on the session's daemon does not know this call. */
void fake_daemon_lacks(struct gpc_session *session, uint16_t call);

/* Whether so many records came within a few seconds. */
bool fake_daemon_wait_records(struct fake_daemon *daemon, size_t count);

#endif /* FAKE_DAEMON_H */
