/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake supervisor for tests of connection setup.
 *
 * The supervisor is the daemon's process that accepts clients. Here a thread accepts one control
 * connection and serves it by the test's function `serve`; the test opens a session to it with
 * open_link(). On a control connection, a client and the supervisor exchange preambles (protocol
 * versions) and the messages hello and welcome; the client's first lane then belongs to the
 * session.
 * Ownership: start() creates a supervisor. stop() waits for its thread and frees it; clean_up()
 * frees one whose thread never ran.
 * Threads: `serve` runs in the supervisor's thread. The test changes members before open_link(),
 * and reads what was received after stop() or, if it needs the supervisor, after pthread_join().
 * Errors: failures of the set-up fail the test.
 */
#ifndef FAKE_SUPERVISOR_H
#define FAKE_SUPERVISOR_H

#include "client/connect/connect.h"
#include "client/connect/window.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "protocol/preamble.h"
#include "tests/control_messages.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Size of the window (address range of device memory), and granularity of mappings, in bytes. */
#define WINDOW_SIZE ((uint64_t)1 << 30)
#define GRANULARITY ((uint64_t)2 << 20)

/* The supervisor, the messages that it sends and those that it has received. */
struct supervisor {
	struct gp_listener *listener;
	const struct gp_url *url; /* address of the listener, borrowed from it */
	pthread_t thread;
	/* Serves a control connection after the client's preamble; the connection is destroyed
	 * when it returns. */
	void (*serve)(struct supervisor *supervisor, struct gp_conn *control);
	/* The welcome message that serve_welcome() sends, and its parts. */
	Gpupool__Welcome welcome;
	Gpupool__Limits limits;
	Gpupool__Window window, other_window;
	Gpupool__Device device, *devices[GPC_DEVICES_MAX + 1];
	uint8_t ticket[GP_TICKET_SIZE], uuid[16];
	/* Contents of the client's messages: the preamble of its lane, and the host and program
	 * names of its hello. */
	struct gp_preamble lane;
	char host[64], program[64];
	size_t avoided;
	struct gp_conn *lane_conn; /* the accepted lane, owned by the supervisor; NULL: none */
};

/* Returns an address at which WINDOW_SIZE bytes were free, aligned to this size. */
static inline uint64_t
free_address(void)
{
	/* The range is large, so that the next mappings (a thread's stack, for example) are far
	 * from the address. */
	uint8_t *place = mmap(NULL, 8 * WINDOW_SIZE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(place != MAP_FAILED);
	(void)munmap(place, 8 * WINDOW_SIZE);
	return ((uintptr_t)place + WINDOW_SIZE - 1) & ~(WINDOW_SIZE - 1);
}

/* Receives the client's hello and stores its contents. */
static inline void
take_hello(struct supervisor *supervisor, struct gp_conn *control)
{
	Gpupool__ControlMessage *message;

	if (gp_control_recv(control, &message) != 0)
		return;
	if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO) {
		(void)snprintf(supervisor->host, sizeof(supervisor->host), "%s",
			       message->hello->host);
		(void)snprintf(supervisor->program, sizeof(supervisor->program), "%s",
			       message->hello->program);
	}
	gp_control_free(message);
}

/* Sends the supervisor's preamble with this major protocol version. */
static inline void
answer_preamble(struct gp_conn *control, unsigned int major)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;

	gp_preamble_init(&preamble, GP_PREAMBLE_CONTROL, 0);
	preamble.major = (uint16_t)major;
	gp_preamble_encode(&preamble, bytes);
	(void)!gp_conn_send_preamble(control, bytes, sizeof(bytes));
}

/* A `serve` function: accepts the client, without waiting for its lane. */
static inline void
serve_welcome(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_welcome(control, &supervisor->welcome);
}

/* Accepts the client's lane within 5 s, and stores it and its preamble. */
static inline void
take_lane(struct supervisor *supervisor)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];

	if (gp_accept(supervisor->listener, 5000, &supervisor->lane_conn) != 0)
		return;
	if (gp_conn_recv_preamble(supervisor->lane_conn, bytes, sizeof(bytes), 5000) == 0)
		(void)!gp_preamble_decode(bytes, &supervisor->lane);
}

/* Thread function of the supervisor: accepts a connection within 5 s and serves it. Returns
 * NULL. */
static inline void *
run(void *arg)
{
	struct supervisor *supervisor = arg;
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_conn *control;

	if (gp_accept(supervisor->listener, 5000, &control) != 0)
		return NULL;
	if (gp_conn_recv_preamble(control, bytes, sizeof(bytes), 5000) == 0)
		supervisor->serve(supervisor, control);
	gp_conn_destroy(control);
	return NULL;
}

/* Fills in a welcome message that the client accepts. */
static inline void
make_welcome(struct supervisor *supervisor)
{
	memset(supervisor->ticket, 0x5a, sizeof(supervisor->ticket));
	gpupool__window__init(&supervisor->window);
	supervisor->window.address = free_address();
	supervisor->window.size = WINDOW_SIZE;
	supervisor->other_window = supervisor->window;
	gpupool__limits__init(&supervisor->limits);
	supervisor->limits.heap_granularity = GRANULARITY;
	supervisor->limits.heap_size = 2 * GRANULARITY;
	gpupool__device__init(&supervisor->device);
	supervisor->device.name = (char *)"test device";
	supervisor->device.uuid = (ProtobufCBinaryData){ 16, supervisor->uuid };
	for (int i = 0; i <= GPC_DEVICES_MAX; i++)
		supervisor->devices[i] = &supervisor->device;
	gpupool__welcome__init(&supervisor->welcome);
	supervisor->welcome.ticket = (ProtobufCBinaryData){ GP_TICKET_SIZE, supervisor->ticket };
	supervisor->welcome.window = &supervisor->window;
	supervisor->welcome.limits = &supervisor->limits;
	supervisor->welcome.devices = supervisor->devices;
	supervisor->welcome.n_devices = 1;
	supervisor->welcome.driver_version = 12040;
	supervisor->welcome.session_id = 77;
}

/* Returns a new supervisor that listens on a free port of the loopback interface. */
static inline struct supervisor *
start(void (*serve)(struct supervisor *, struct gp_conn *))
{
	struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
	char error[256];
	struct gp_url url;

	supervisor->serve = serve;
	make_welcome(supervisor);
	assert_int_equal(gp_url_parse("127.0.0.1:1", &url, error, sizeof(error)), 0);
	url.port = 0;
	assert_int_equal(gp_listen(&url, &supervisor->listener, error, sizeof(error)), 0);
	supervisor->url = gp_listener_url(supervisor->listener);
	return supervisor;
}

/* Starts the supervisor's thread and opens a session to it. Returns the result of
 * gpc_link_open(): 0 and a link, which close_link() frees, or a negative error and a text in
 * `error`. */
static inline int
open_link(struct supervisor *supervisor, struct gpc_link *link, char error[512])
{
	*error = '\0';
	assert_int_equal(pthread_create(&supervisor->thread, NULL, run, supervisor), 0);
	return gpc_link_open(supervisor->url, NULL, 0, NULL, link, error, 512);
}

/* Frees a supervisor without waiting for its thread. */
static inline void
clean_up(struct supervisor *supervisor)
{
	gp_conn_destroy(supervisor->lane_conn);
	gp_listener_destroy(supervisor->listener);
	free(supervisor);
}

/* Waits for the supervisor's thread and frees the supervisor. */
static inline void
stop(struct supervisor *supervisor)
{
	(void)pthread_join(supervisor->thread, NULL);
	clean_up(supervisor);
}

/* Opens a session and asserts that this fails with result `r`, that the error text is one line with
 * `words` and the URL, and that the link is empty. Stops the supervisor. */
static inline void
expect_failure(struct supervisor *supervisor, int r, const char *words)
{
	struct gpc_link link;
	char error[512], text[GP_URL_TEXT_MAX];

	assert_int_equal(open_link(supervisor, &link, error), r);
	gp_url_format(supervisor->url, text, sizeof(text));
	if (!strstr(error, words) || !strstr(error, text) || strchr(error, '\n'))
		print_error("%s\n", error);
	assert_non_null(strstr(error, words));
	assert_non_null(strstr(error, text));
	assert_null(strchr(error, '\n'));
	assert_null(link.control);
	assert_null(link.lane);
	stop(supervisor);
}

/* A `serve` function: accepts the client and its lane. */
static inline void
serve_session(struct supervisor *supervisor, struct gp_conn *control)
{
	serve_welcome(supervisor, control);
	take_lane(supervisor);
}

/* Frees a link that open_link() has opened. */
static inline void
close_link(struct gpc_link *link)
{
	gpc_window_release(link->facts.window_base, link->facts.window_size);
	gpc_link_fini(link);
}

#endif /* FAKE_SUPERVISOR_H */
