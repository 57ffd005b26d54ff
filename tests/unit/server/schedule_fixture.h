/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of the schedule, by which a worker shares its GPU among sessions: clients that
 * launch kernels from threads, on a simulated GPU in virtual time (virtual_time.h).
 *
 * The GPU runs one kernel at a time, each for the duration that the test sets, and writes its
 * timestamps. Results do not depend on the machine's speed.
 * Ownership: the ledger (shared memory with the accounts of all sessions) exists as long as the
 * process, and clients from add_client() to the end of their test.
 * Threads: clients' threads use their own client; `gpu` is protected by its lock, except for atomic
 * members.
 * Errors: failures fail the test.
 * Units: times are in nanoseconds of virtual time, shares in per mille.
 */
#ifndef SCHEDULE_FIXTURE_H
#define SCHEDULE_FIXTURE_H

#include "server/common/ledger/ledger.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "tests/test.h"
#include "tests/unit/server/virtual_time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
/* IDs of a client's two streams. */
#define STREAM 1
#define OTHER_STREAM 2
/* Maximum number of clients of a test; tenants 1 to CLIENTS_MAX exist. */
#define CLIENTS_MAX 8

/* A stream of the simulated GPU: the time at which its last kernel ends. */
struct gpu_stream {
	uint64_t end_ns;
};

/* A client (session) and its behavior, which the test may change before start_clients(). */
struct client {
	struct gpd_session session;
	struct gpd_stream streams[2];
	struct gpu_stream gpu_streams[2];
	pthread_t thread;
	uint64_t kernel_ns;       /* duration of its kernels */
	unsigned int per_message; /* launches per message */
	bool waits; /* whether it waits for the GPU after each message; otherwise it is at most 100
		       ms ahead */
	uint64_t think_ns; /* time that it sleeps after each message; 0: none */
	/* GPU time of its kernels since the measurement began. */
	_Atomic uint64_t used_ns;
	_Atomic uint64_t launches; /* number of kernels launched */
};

/* The simulated GPU. */
extern struct gpu {
	pthread_mutex_t lock;
	uint64_t free_ns; /* time at which its last kernel ends */
	/* Numbers of requested timestamps, and of requested writes of the value 1. */
	_Atomic int stamps, marks;
	_Atomic int waiting;       /* number of timestamps and writes that wait for their stream */
	_Atomic int events;        /* number of CUDA events created or recorded; must stay 0 */
	_Atomic int asked_in_vain; /* number of queries of the stream `gone` */
	_Atomic bool refuses;      /* whether launches fail */
	void *_Atomic gone;        /* a destroyed stream; NULL: none */
} gpu;

/* The ledger, and the clients of the test. */
extern struct gpd_ledger *ledger;
extern struct client clients[CLIENTS_MAX];
extern unsigned int client_count;

/* CMocka setup and teardown of a test; return 0. */
int schedule_setup(void **state);
int schedule_teardown(void **state);
/* Defines a test with this fixture. */
#define CASE(test) UNIT_TEST_WITH(test, schedule_setup, schedule_teardown)

/* Names of the clock's functions in tests. */
#define now_ns virtual_now_ns
#define sleep_until virtual_sleep_until

/* Adds a kernel of `ns` to the end of the stream. Does not wait. */
void run_kernel(struct gpu_stream *stream, uint64_t ns);
/* Returns the time at which the last kernel of the stream ends; in the past if it is idle. */
uint64_t end_of(struct gpu_stream *stream);

/* Adds a client with kernels of kernel_ns and 10 launches per message, and returns it. tenant: its
 * tenant's ID; 0: the client has no tenant and counts as one of its own. */
struct client *add_client(uint32_t tenant, uint64_t kernel_ns);
/* Returns the entry of a tenant in the ledger, with its policy and shares, for the test to
 * change. */
struct gpd_ledger_tenant_line *terms_of(uint32_t tenant);
/* Launches a kernel of `ns` on a stream of the client (or on STREAM). Waits while it is not the
 * client's turn. */
void launch_on(struct client *client, uint32_t stream, uint64_t ns);
void launch(struct client *client, uint64_t ns);
/* Tells the schedule that the client has no more launches for now, as after a message. */
void pause_client(struct client *client);
/* Closes the session and waits until its kernels have ended. */
void close_client(struct client *client);

/* Starts a thread for each client, which launches until stop_clients(). stop_clients() waits for
 * the threads. */
void start_clients(void);
void stop_clients(void);
/* Runs all clients for `ns` and measures what each uses (used_ns), after a phase of 300 ms in which
 * the schedule adapts. */
void measure(uint64_t ns);

/* Returns the GPU time that the ledger has recorded for the client. */
uint64_t measured(const struct client *client);
/* Returns the time by which the client's launches were delayed. */
uint64_t waited(const struct client *client);

/* Asserts that `got` is `wanted` per mille of `of`, plus or minus `within` per mille. */
void assert_part(uint64_t got, uint64_t of, unsigned int wanted, unsigned int within);

/* Asserts that run() returns *wanted, which it sets, plus or minus `within` per mille. */
void assert_measured(uint64_t (*run)(uint64_t *wanted), unsigned int within);

/* Bounds of a client's share, in per mille; both are inclusive. */
struct part {
	unsigned int least, most;
};

/* Measures one second and asserts the clients' shares of this second (of_sum: of the time that all
 * of them used). `parts` has one element per client. */
void assert_parts(bool of_sum, const struct part *parts);

#endif /* SCHEDULE_FIXTURE_H */
