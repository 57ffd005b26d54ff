/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of unauthenticated peers and of clients to the supervisor: up to four connections at a
 * time, from their preambles on, handled by the supervisor's own code, with a worker that obeys it.
 *
 * Each operation is a byte, whose upper half is the connection, with its operands: a preamble with
 * fields of the input's, or the ticket of an existing session; unchanged bytes; a control
 * message of the input's; a Hello followed by more of the input's; time for the supervisor.
 */
#include "protocol/ticket.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 4
#define HANDSHAKES 64
#define TIMEOUT_MS 20000
/* Time limit for the supervisor to process what was sent. */
#define PAUSE_MS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gpd_admission admission;
static struct gpd_quota quota;
static struct gpd_worker_process worker = { .pid = 0x3fffffff, .state = GPD_WORKER_SERVING };
static struct gpd_channel worker_end;
static int connections[CONNECTIONS];

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A worker's description of itself. */
static Gpupool__Welcome *
make_facts(void)
{
	static Gpupool__Welcome welcome = GPUPOOL__WELCOME__INIT;
	static Gpupool__Device device = GPUPOOL__DEVICE__INIT, *devices[] = { &device };
	static Gpupool__Limits limits = GPUPOOL__LIMITS__INIT;
	static int32_t attributes[120];
	static uint8_t uuid[16];

	for (int i = 0; i < 120; i++)
		attributes[i] = i + 1;
	device.name = (char *)"device";
	device.uuid = (ProtobufCBinaryData){ sizeof(uuid), uuid };
	device.total_memory = (uint64_t)1 << 34;
	device.attributes = attributes;
	device.n_attributes = 120;
	limits.heap_granularity = 1 << 21;
	limits.heap_size = 1 << 22;
	welcome.devices = devices;
	welcome.n_devices = 1;
	welcome.limits = &limits;
	return &welcome;
}

/* The shared worker is the only one. */
static void
select_nothing(void *arg, const struct gpd_connection *connection)
{
	(void)arg;
	(void)connection;
}

static enum gpd_place
find_place(void *arg, const struct gpd_connection *connection, enum gpd_places_reason *reason)
{
	(void)arg;
	(void)connection;
	(void)reason;
	return GPD_PLACE_READY;
}

static void
set_up(void)
{
	static char tokens[64];
	char error[GPD_CONFIG_ERROR_MAX];
	int fds[2];

	gpd_log_level = GPD_LOG_ERROR;
	check(gpd_connection_setup() == 0 && gpd_quota_init(&quota, NULL, error) == 0);
	check(gpd_admission_init(&admission, &quota, 8, 4) == 0);
	/* There are no tokens. */
	snprintf(tokens, sizeof(tokens), "/proc/self/fd/%d", memfd_create("tokens", MFD_CLOEXEC));
	check(gpd_authentication_open(&admission.authentication, quota.tenants.config, tokens, true,
				      error, sizeof(error)) == 0);
	check(gpd_channel_pair(fds) == 0 && gpd_channel_init(&worker.channel, fds[0]) == 0 &&
	      gpd_channel_init(&worker_end, fds[1]) == 0);
	worker.facts = make_facts();
	admission.selected[GPD_GROUP_SHARED] = &worker;
	admission.select_worker = select_nothing;
	admission.find_place = find_place;
	memset(connections, -1, sizeof(connections));
}

/* The worker's reply, which is sent to the supervisor at once. */
static void
answer(const struct gpd_channel_message *told)
{
	uint64_t room[(sizeof(struct gpd_channel_opened) + 8) / 8] = { 0 };
	struct gpd_channel_opened *opened = (struct gpd_channel_opened *)room;
	struct gpd_channel_message said = { .header.session = told->header.session, .fd = -1 };

	switch (told->header.type) {
	case GPD_CHANNEL_OPEN:
		check(told->fd >= 0);
		/* fall through */
	case GPD_CHANNEL_MOVE_WINDOW:
		opened->window = (struct gpd_range){ (uint64_t)1 << 44, (uint64_t)1 << 38 };
		opened->device_count = 1;
		opened->memory_free[0] = (uint64_t)1 << 33;
		said.data = opened;
		said.size = sizeof(room);
		gpd_admission_opened(&admission, &worker, &said);
		break;
	case GPD_CHANNEL_CLOSE:
		said.data = "over";
		said.size = 4;
		gpd_admission_closed(&admission, &worker, &said);
		break;
	case GPD_CHANNEL_LANE:
	case GPD_CHANNEL_DATA_LANE:
		check(told->size == sizeof(struct gpd_channel_lane) && told->fd >= 0);
		break;
	}
}

/* The client reads what it receives, or ignores it. */
static void
discard(void)
{
	static uint8_t bytes[65536];

	for (int i = 0; i < CONNECTIONS; i++) {
		while (connections[i] >= 0 &&
		       recv(connections[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			continue;
	}
}

/* Runs the supervisor until nothing has happened for this time. */
static void
work(int quiet_ms)
{
	struct pollfd poller = { .fd = gpd_connection_events_fd(), .events = POLLIN };
	struct gpd_channel_message told;
	bool more;

	do {
		more = poll(&poller, 1, quiet_ms) > 0;
		gpd_admission_handle_events(&admission);
		gpd_admission_check_deadlines(&admission);
		check(gpd_channel_flush(&worker.channel) == 0);
		while (gpd_channel_recv(&worker_end, false, &told) == 0) {
			answer(&told);
			if (told.fd >= 0)
				(void)close(told.fd);
			more = true;
		}
		discard();
	} while (more);
}

static void
open_connection(int index)
{
	int fds[2];

	if (connections[index] >= 0)
		(void)close(connections[index]);
	/* As in the listener: a limited number of connections without a Hello. */
	if (admission.handshakes + (int)admission.waiting_count >= HANDSHAKES)
		work(PAUSE_MS);
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	connections[index] = fds[1];
	(void)gpd_admission_accept(&admission, fds[0], "tcp://local:0", "tcp");
}

/* Bytes that do not fit are dropped. */
static void
give(int index, const void *bytes, size_t size)
{
	if (connections[index] >= 0)
		(void)!send(connections[index], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
give_message(int index, const void *bytes, size_t size, const void *more, size_t more_size)
{
	uint32_t sizes[2] = { (uint32_t)(size + more_size), 0 };

	give(index, sizes, sizeof(sizes));
	give(index, bytes, size);
	give(index, more, more_size);
}

static void
give_preamble(int index, const uint8_t *fields)
{
	struct gp_preamble preamble;
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gpd_connection *connection = admission.connection_list;

	gp_preamble_init(&preamble, fields[0] % 5, fields[1] % 8);
	for (int i = 0; i < fields[2] % 4 && connection; i++)
		connection = connection->next;
	if (fields[0] & 0x80 && connection)
		memcpy(preamble.ticket, connection->ticket, sizeof(preamble.ticket));
	gp_preamble_encode(&preamble, bytes);
	if (fields[0] & 0x40)
		bytes[fields[3] % sizeof(bytes)] ^= fields[2];
	give(index, bytes, sizeof(bytes));
}

static void
give_hello(int index, const uint8_t *more, size_t size)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	struct gp_preamble preamble;
	uint8_t bytes[GP_PREAMBLE_SIZE], packed[256];

	gp_preamble_init(&preamble, GP_PREAMBLE_CONTROL, 0);
	gp_preamble_encode(&preamble, bytes);
	give(index, bytes, sizeof(bytes));
	hello.host = (char *)"host";
	hello.program = (char *)"fuzz";
	message.hello = &hello;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_HELLO;
	give_message(index, packed, gpupool__control_message__pack(&message, packed), more, size);
}

static void
operate(unsigned int what, const uint8_t *bytes, size_t size)
{
	int index = (int)(what >> 4) % CONNECTIONS;
	uint8_t fields[4] = { 0 };

	switch (what % 8) {
	case 0:
		open_connection(index);
		memcpy(fields, bytes, size < sizeof(fields) ? size : sizeof(fields));
		give_preamble(index, fields);
		break;
	case 1:
		open_connection(index);
		give_hello(index, bytes, size);
		work(PAUSE_MS);
		break;
	case 2:
		give(index, bytes, size);
		break;
	case 3:
		if (connections[index] >= 0)
			(void)shutdown(connections[index], SHUT_WR);
		break;
	case 4:
		open_connection(index);
		break;
	case 5:
		work(PAUSE_MS);
		break;
	default:
		give_message(index, bytes, size, NULL, 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t deadline;

	if (!quota.ledger)
		set_up();
	while (size >= 3) {
		size_t part = (size_t)data[1] | (size_t)data[2] << 8;

		if (part > size - 3)
			part = size - 3;
		operate(data[0], data + 3, part);
		data += 3 + part;
		size -= 3 + part;
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		if (connections[i] >= 0)
			(void)shutdown(connections[i], SHUT_WR);
	}
	deadline = now_ms() + TIMEOUT_MS;
	while (admission.connection_list || admission.waiting ||
	       !gpd_admission_is_empty(&admission)) {
		check(now_ms() < deadline);
		work(1);
	}
	check(admission.handshakes == 0);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (connections[i] >= 0)
			(void)close(connections[i]);
		connections[i] = -1;
	}
	return 0;
}
