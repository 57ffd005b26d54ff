/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that launch, each in a thread, on a GPU that is a clock: it runs one kernel at a time,
 * each for as long as the test says, and stamps are written when it is time.  The time is virtual
 * (virtual_time.h), so what they get does not depend on the machine.  The ledger is as old as the
 * process; clients live from add_client() to the end of their test.
 */
#ifndef SCHEDULE_FIXTURE_H
#define SCHEDULE_FIXTURE_H

#include "server/common/ledger/ledger.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
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
	unsigned int per_message; /* launches */
	bool waits;               /* for the GPU after each message */
	uint64_t think_ns;
	_Atomic uint64_t used_ns;
	_Atomic uint64_t launches;
};

extern struct gpu {
	pthread_mutex_t lock;
	uint64_t free_ns;
	_Atomic int stamps, marks; /* that were asked for: the clock, or a one */
	_Atomic int waiting;       /* of these, for the stream */
	_Atomic int events;        /* that were made, or recorded */
	_Atomic int asked_in_vain;
	_Atomic bool refuses; /* to run kernels */
	void *_Atomic gone;   /* a stream */
} gpu;

extern struct gpd_ledger *ledger;
extern struct client clients[CLIENTS_MAX];
extern unsigned int client_count;

int schedule_setup(void **state);
int schedule_teardown(void **state);
#define CASE(test) UNIT_TEST_WITH(test, schedule_setup, schedule_teardown)

#define now_ns virtual_now_ns
#define sleep_until virtual_sleep_until

/* Behind what is in the stream; and when the last one there ends. */
void run_kernel(struct gpu_stream *stream, uint64_t ns);
uint64_t end_of(struct gpu_stream *stream);

/* Of a tenant of its own, unless one is named. */
struct client *add_client(uint32_t tenant, uint64_t kernel_ns);
struct gpd_ledger_tenant_line *terms_of(uint32_t tenant);
void launch_on(struct client *client, uint32_t stream, uint64_t ns);
void launch(struct client *client, uint64_t ns);
void pause_client(struct client *client);
/* Behind all that it has launched. */
void close_client(struct client *client);

/* All clients launch, each in its thread, until they are stopped. */
void start_clients(void);
void stop_clients(void);
/* Lets all work, and counts from a moment at which they have found their ways. */
void measure(uint64_t ns);

/* GPU time that the ledger has of it, and how long it was held back. */
uint64_t measured(const struct client *client);
uint64_t waited(const struct client *client);

/* In per mille. */
void assert_part(uint64_t got, uint64_t of, unsigned int wanted, unsigned int within);

/* run() returns *wanted, within so many per mille. */
void assert_measured(uint64_t (*run)(uint64_t *wanted), unsigned int within);

/* What a client's part of something is to be, in per mille. */
struct part {
	unsigned int least, most;
};

/* The clients' parts of a second, or of what they get together. */
void assert_parts(bool of_sum, const struct part *parts);

#endif /* SCHEDULE_FIXTURE_H */
