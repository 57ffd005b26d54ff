/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of the schedule: clients that launch kernels from threads, on a simulated GPU
 * in virtual time (virtual_time.h).
 *
 * The GPU runs one kernel at a time, each for the duration that the test sets, and writes its
 * timestamps. Results do not depend on the machine's pace.
 * Ownership: the ledger lives as long as the process, and clients from add_client() to the end of
 * their test.
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
#define STREAM 1
#define OTHER_STREAM 2
#define CLIENTS_MAX 8

struct gpu_stream {
	uint64_t end_ns;
};

struct client {
	struct gpd_session session;
	struct gpd_stream streams[2];
	struct gpu_stream gpu_streams[2];
	pthread_t thread;
	uint64_t kernel_ns;
	unsigned int per_message; /* launches per message */
	bool waits;               /* whether the client waits for the GPU after each message */
	uint64_t think_ns;
	_Atomic uint64_t used_ns;
	_Atomic uint64_t launches;
};

extern struct gpu {
	pthread_mutex_t lock;
	uint64_t free_ns;
	_Atomic int stamps, marks; /* requested timestamps, and requested writes of a one */
	_Atomic int waiting;       /* timestamps and marks that wait for their stream */
	_Atomic int events;        /* events created or recorded */
	_Atomic int asked_in_vain;
	_Atomic bool refuses; /* whether launches fail */
	void *_Atomic gone; /* a destroyed stream, queries of which are counted in asked_in_vain */
} gpu;

extern struct gpd_ledger *ledger;
extern struct client clients[CLIENTS_MAX];
extern unsigned int client_count;

int schedule_setup(void **state);
int schedule_teardown(void **state);
#define CASE(test) UNIT_TEST_WITH(test, schedule_setup, schedule_teardown)

#define now_ns virtual_now_ns
#define sleep_until virtual_sleep_until

/* Adds a kernel to the end of the stream, and returns when the last kernel of the stream ends. */
void run_kernel(struct gpu_stream *stream, uint64_t ns);
uint64_t end_of(struct gpu_stream *stream);

/* Adds a client. Tenant 0: a tenant of its own. */
struct client *add_client(uint32_t tenant, uint64_t kernel_ns);
struct gpd_ledger_tenant_line *terms_of(uint32_t tenant);
void launch_on(struct client *client, uint32_t stream, uint64_t ns);
void launch(struct client *client, uint64_t ns);
void pause_client(struct client *client);
/* Closes the session after all its launches. */
void close_client(struct client *client);

/* Starts one thread per client, each of which launches until stop_clients(). */
void start_clients(void);
void stop_clients(void);
/* Runs all clients for `ns` and measures what each uses, after a phase in which the schedule
 * adapts. */
void measure(uint64_t ns);

/* GPU time that the ledger has recorded for the client, and the time that its launches were
 * delayed. */
uint64_t measured(const struct client *client);
uint64_t waited(const struct client *client);

/* Asserts that `got` is `wanted` per mille of `of`, give or take `within` per mille. */
void assert_part(uint64_t got, uint64_t of, unsigned int wanted, unsigned int within);

/* Asserts that run() returns *wanted, give or take `within` per mille. */
void assert_measured(uint64_t (*run)(uint64_t *wanted), unsigned int within);

/* Bounds of a client's share, in per mille. */
struct part {
	unsigned int least, most;
};

/* Asserts the clients' shares of one second, or of the sum of what all of them used. */
void assert_parts(bool of_sum, const struct part *parts);

#endif /* SCHEDULE_FIXTURE_H */
