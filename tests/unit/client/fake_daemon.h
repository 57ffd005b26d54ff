/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripted daemon at the other end of a client's connection, for tests of the client's wire layer
 * and of everything above it.
 *
 * A thread of the test receives one record after another, stores its header, and calls the test's
 * `answer` function, which sends replies and notes. The connection is a real one, over tcp or
 * inside the process ("loop").
 * Ownership: fake_daemon_start() creates the session and the thread, and fake_daemon_stop() frees
 * both.
 * Threads: `answer` runs in the daemon's thread. Tests read `records` below `count`, which is
 * atomic. The send functions may be called by any thread.
 */
#ifndef FAKE_DAEMON_H
#define FAKE_DAEMON_H

#include "client/session/session.h"
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
	uint64_t first_word; /* first 8 bytes of the fields */
	size_t bulk_size;
};

struct fake_daemon {
	struct gp_conn *conn;
	pthread_t thread;
	/* Called for each record in the daemon's thread. A result other than 0 ends the thread and
	 * closes the connection. */
	int (*answer)(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size);
	void *arg;
	sem_t proceed;    /* for an answer function that waits for the test */
	atomic_bool hold; /* while true, the daemon receives nothing */
	struct fake_daemon_record *records;
	atomic_size_t count;
	atomic_size_t messages;
	pthread_mutex_t send_lock;
};

/* Connects a session, which gpc_session_get() then returns, to a new daemon. */
void fake_daemon_start(struct fake_daemon *daemon, const char *scheme, unsigned int max_outstanding,
		       struct gpc_session **session_p);
/* Closes the connection, joins the thread, and frees the session. */
void fake_daemon_stop(struct fake_daemon *daemon, struct gpc_session *session);

/* Creates the two connected ends of a connection over `scheme`. */
void fake_daemon_connection(const char *scheme, struct gp_conn **near_p, struct gp_conn **far_p);

/* Sends a message with one record. */
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

/* An answer function: replies with success and zeros to each call that waits. */
int fake_daemon_answer(struct fake_daemon *daemon, const struct gp_header *header,
		       const void *fields, size_t size);

/* Returns the number of `call` records received, after everything posted before has arrived. */
size_t fake_daemon_received(struct fake_daemon *daemon, uint16_t call);
/* Makes the session behave as if its daemon does not support this call. */
void fake_daemon_lacks(struct gpc_session *session, uint16_t call);

/* Waits up to a few seconds for the daemon to receive `count` records. Returns whether it did. */
bool fake_daemon_wait_records(struct fake_daemon *daemon, size_t count);

#endif /* FAKE_DAEMON_H */
