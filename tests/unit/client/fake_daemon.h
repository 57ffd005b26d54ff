/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripted daemon at the other end of a client's connection, for tests of the client's wire layer
 * and of everything above it.
 *
 * A thread of the test receives one record (call) after another, stores its header, and calls the
 * test's `answer` function, which sends replies and notes (messages that are not replies). The
 * connection is a real one, over tcp or a UNIX socket pair.
 * Ownership: the test owns struct fake_daemon, zeroed except for `answer` and `arg`.
 * fake_daemon_start() creates the session and the thread, and fake_daemon_stop() frees both.
 * Threads: `answer` runs in the daemon's thread. Tests may read `records` below `count`, which is
 * atomic. Any thread may call the functions that send.
 * Errors: failures fail the test, except that errors of sending are ignored.
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

/* Number of records that are stored; later ones overwrite the oldest. */
#define FAKE_DAEMON_RECORDS_MAX 65536

/* A record that the daemon has received. */
struct fake_daemon_record {
	struct gp_header header;
	uint64_t first_word; /* first 8 bytes of the fields; 0: no fields */
	size_t bulk_size;
};

struct fake_daemon {
	struct gp_conn *conn;
	pthread_t thread;
	/* Called for each record in the daemon's thread; NULL: fake_daemon_answer(). `fields` has
	 * `size` bytes and is valid during the call. Returns 0; another result ends the thread and
	 * shuts the connection down. */
	int (*answer)(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size);
	void *arg;        /* for the test's `answer` function */
	sem_t proceed;    /* for an `answer` function that waits for the test, which posts it */
	atomic_bool hold; /* while true, the daemon receives nothing */
	/* The records received, by index modulo FAKE_DAEMON_RECORDS_MAX. */
	struct fake_daemon_record *records;
	atomic_size_t count; /* number of records received */
	/* Number of messages received; a message has one or more records. */
	atomic_size_t messages;
	pthread_mutex_t send_lock; /* serializes messages to the client */
};

/* Creates a session with a connection to the daemon, starts the daemon's thread, and makes the
 * session the one that gpc_session_get() returns. scheme: "tcp" or "unix". max_outstanding: number
 * of calls without a reply that the session may have. */
void fake_daemon_start(struct fake_daemon *daemon, const char *scheme, unsigned int max_outstanding,
		       struct gpc_session **session_p);
/* Closes the session, waits for the thread, and frees everything that fake_daemon_start() has
 * created. */
void fake_daemon_stop(struct fake_daemon *daemon, struct gpc_session *session);

/* Creates the two connected ends of a connection over `scheme`. The caller frees them with
 * gp_conn_destroy(). */
void fake_daemon_connection(const char *scheme, struct gp_conn **near_p, struct gp_conn **far_p);

/* Sends a message with one record: a header, `size` bytes of fields and `bulk_size` bulk bytes.
 * Both may be 0. Copies the bytes. */
void fake_daemon_send(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size, const void *bulk, size_t bulk_size);
/* Sends the reply to the call with the header `to`. */
void fake_daemon_reply(struct fake_daemon *daemon, const struct gp_header *to, CUresult result,
		       const void *fields, size_t size);
/* Sends a note that an earlier call (gpFill, or `call`) without a reply has failed. sticky: the
 * context is unusable. */
void fake_daemon_note_error(struct fake_daemon *daemon, CUresult result, bool sticky);
void fake_daemon_note_error_of(struct fake_daemon *daemon, CUresult result, bool sticky,
			       uint16_t call);
/* Sends a note with output of kernels, at most about 500 bytes. */
void fake_daemon_note_print(struct fake_daemon *daemon, const char *text);
/* Sends a note with a part of the data of a request, which belongs at `offset` of it. */
void fake_daemon_note_data(struct fake_daemon *daemon, uint32_t request, uint64_t offset,
			   const void *data, size_t size);

/* An `answer` function: replies with success and zeros to each call that waits for a reply. Returns
 * 0. */
int fake_daemon_answer(struct fake_daemon *daemon, const struct gp_header *header,
		       const void *fields, size_t size);

/* Waits until everything that was posted before has arrived (gpFence), and returns the number of
 * `call` records received. */
size_t fake_daemon_received(struct fake_daemon *daemon, uint16_t call);
/* Makes the session behave as if its daemon did not support this call. */
void fake_daemon_lacks(struct gpc_session *session, uint16_t call);

/* Waits until the daemon has received `count` records in all. Returns true, or false after about 5
 * s. */
bool fake_daemon_wait_records(struct fake_daemon *daemon, size_t count);

#endif /* FAKE_DAEMON_H */
