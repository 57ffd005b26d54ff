/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/connect.h"

#include "client/base/config.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/connect/program.h"
#include "client/connect/tls_files.h"
#include "client/connect/token.h"
#include "client/connect/window.h"
#include "protocol/preamble.h"
#include "protocol/printable.h"
#include "protocol/ticket.h"

#include <endian.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS 10000
/* What this end can do besides. */
#define FEATURES ((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4)
/* Asked for with lane 0; how many of them suit the link shows later (lane_plan.h). */
#define LANES_DEFAULT 8
/* Where there is another way, and the daemon waits for the lane. */
#define TRY_RDMA_MS 3000
#define ANSWER_MS 10000
#define WINDOW_TRIES 4
/* Of the words of a daemon, in a line. */
#define SAID_MAX 256
#define CLIENT_VERSION "0.1.0"

/* Where a daemon does not say, and what it may claim. */
#define OUTSTANDING_DEFAULT 1024
#define OUTSTANDING_MAX 65536
#define IMAGE_DEFAULT ((uint64_t)1 << 30)

/* What is being opened, and where to say what goes wrong. */
struct opening {
	const struct gp_url *url;
	struct gp_url control; /* where its control connection goes */
	int connect_ms;
	const int32_t *devices;
	int device_count;
	bool has_token;
	struct gp_token token;
	char text[GP_URL_TEXT_MAX];
	char *error;
	size_t error_size;
};

static int GP_PRINTF(3, 4) fail(struct opening *opening, int r, const char *text, ...)
{
	char what[384];
	va_list arguments;

	va_start(arguments, text);
	(void)vsnprintf(what, sizeof(what), text, arguments);
	va_end(arguments);
	(void)snprintf(opening->error, opening->error_size, "%s%s", opening->text, what);
	return r;
}

static bool
wants_rdma(const struct gp_url *url)
{
	return strcmp(url->scheme, "rdma") == 0 || strcmp(url->scheme, GP_URL_RDMA_OR_TCP) == 0;
}

/* Where control connections go, and lanes that find no RDMA: for an address for RDMA to the same
 * place, with TLS if this user has anything to check or to show.  What the daemon would like does
 * not count: whoever is on the way could say so. */
static void
control_url(const struct gp_url *url, struct gp_url *control)
{
	*control = *url;
	if (wants_rdma(url))
		(void)snprintf(control->scheme, sizeof(control->scheme), "%s",
			       gpc_tls_is_configured() ? "tls" : "tcp");
}

/* Over a local socket, which memory can come over. */
static bool
wants_shm(const struct gp_url *url)
{
	return strcmp(url->scheme, "unix") == 0 && gpc_config_shm();
}

static int
connect_with(struct opening *opening, const struct gp_url *url, const struct gp_preamble *preamble,
	     struct gp_conn **conn_p)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	char why[256] = "";
	int r;

	gp_preamble_encode(preamble, bytes);
	gpc_stats_wait_begin(GPC_WAIT_CONNECT);
	r = gp_connect(url, bytes, sizeof(bytes), opening->connect_ms, conn_p, why, sizeof(why));
	gpc_stats_wait_end();
	if (r != 0) {
		(void)snprintf(opening->error, opening->error_size, "%s", why);
		return r;
	}
	gp_conn_set_stall(*conn_p, gpc_config_stall_ms());
	return 0;
}

/* Whether connections to this address begin with TLS behind their preambles. */
static bool
wants_tls(const struct gp_url *url)
{
	return strcmp(url->scheme, "tls") == 0;
}

/* Of a daemon that was asked for TLS and has none there.  It may say why it refuses; whoever it is,
 * nothing else that it says in clear counts. */
static int
take_clear_refusal(struct opening *opening, struct gp_conn *conn)
{
	Gpupool__ControlMessage *message = NULL;
	uint8_t bytes[GP_CONN_PREAMBLE_MAX];
	char said[SAID_MAX];
	uint32_t frame[2];
	int r = gp_conn_recv_preamble(conn, frame, sizeof(frame), ANSWER_MS);

	if (r == 0 && frame[1] == 0 && le32toh(frame[0]) <= sizeof(bytes) &&
	    gp_conn_recv_preamble(conn, bytes, le32toh(frame[0]), ANSWER_MS) == 0)
		message = gp_control_decode(bytes, le32toh(frame[0]));
	if (message && message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED) {
		(void)gp_printable(said, sizeof(said), message->refused->text);
		r = fail(opening, GP_E_UNSUPPORTED,
			 ": refused, by whoever answers there in clear: %s", said);
	} else {
		r = fail(opening, GP_E_UNSUPPORTED, ": the daemon offers no TLS there");
	}
	gp_control_free(message);
	return r;
}

/* TLS on a control connection. */
static int
secure(struct opening *opening, struct gp_conn *conn, struct gp_tls *tls)
{
	int r;

	gpc_stats_wait_begin(GPC_WAIT_TLS);
	r = gp_conn_secure(conn, tls, opening->url->host, ANSWER_MS);
	gpc_stats_wait_end();
	return r == 0 ? 0 : fail(opening, r, ": %s", gp_conn_error(conn));
}

static int
take_preamble(struct opening *opening, struct gp_conn *conn)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	int r = gp_conn_recv_preamble(conn, bytes, sizeof(bytes), ANSWER_MS);

	if (r == GP_E_TIMEOUT)
		return fail(opening, r, " does not answer as a gpupool daemon would");
	if (r == GP_E_EOF || r == -ECONNRESET)
		return fail(opening, GP_E_FOREIGN,
			    " is not a gpupool daemon, or it closed the connection at once");
	if (r != 0)
		return fail(opening, r, ": %s", gp_conn_error(conn));
	r = gp_preamble_decode(bytes, &preamble);
	if (r == GP_E_VERSION)
		return fail(opening, r, ": the daemon speaks protocol %u, this client %u",
			    preamble.major, GP_VERSION_MAJOR);
	if (r != 0 || !gp_preamble_is_control(&preamble))
		return fail(opening, GP_E_FOREIGN, " is not a gpupool daemon");
	if (wants_tls(&opening->control) && !gp_preamble_is_tls(&preamble))
		return take_clear_refusal(opening, conn);
	return 0;
}

/* Up to where Hello goes out, inside TLS. */
static int
open_secure(struct opening *opening, struct gpc_link *link, const struct gp_preamble *preamble)
{
	struct gp_tls *tls = NULL;
	char why[384] = "";
	int r = gpc_tls_read(&tls, why, sizeof(why));

	if (r != 0)
		return fail(opening, r, ": %s", why);
	r = connect_with(opening, &opening->control, preamble, &link->control);
	if (r == 0) {
		gpc_stats_wait_begin(GPC_WAIT_HELLO);
		r = take_preamble(opening, link->control);
		gpc_stats_wait_end();
	}
	if (r == 0)
		r = secure(opening, link->control, tls);
	gp_tls_put(tls);
	return r;
}

static void
program_name(char name[32])
{
	FILE *file = fopen("/proc/self/comm", "re");

	*name = '\0';
	if (!file)
		return;
	if (fgets(name, 32, file))
		name[strcspn(name, "\n")] = '\0';
	(void)fclose(file);
}

static void
user_name(char *name, size_t size)
{
	struct passwd entry, *found = NULL;
	char room[1024];

	if (getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) == 0 && found)
		(void)snprintf(name, size, "%s", entry.pw_name);
	else
		(void)snprintf(name, size, "%u", (unsigned int)geteuid());
}

/* The token, if there is one: never where somebody else could read it. */
static int
show_token(struct opening *opening, const struct gp_conn *conn, ProtobufCBinaryData *data)
{
	if (!opening->has_token)
		return 0;
	if (!(gp_conn_caps(conn) & (GP_CONN_CAP_ENCRYPTED | GP_CONN_CAP_LOCAL)))
		return fail(opening, GP_E_INVALID,
			    ": the connection is not encrypted, so the token of GPUPOOL_TOKEN_FILE "
			    "is not sent; tls:// is encrypted");
	data->data = (uint8_t *)opening->token.text;
	data->len = GP_TOKEN_LENGTH;
	return 0;
}

static int
send_hello(struct opening *opening, struct gp_conn *conn, unsigned int *lanes_p, bool *exact_p,
	   enum gp_pack_mode *compression_p)
{
	Gpupool__SessionWish wish = GPUPOOL__SESSION_WISH__INIT;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	char host[256] = "", user[64] = "", program[32] = "";
	uint8_t key[GPC_PROGRAM_KEY_SIZE];
	struct gpc_wish wanted;
	int r = gpc_config_wish(&wanted, opening->error, opening->error_size);

	if (r == 0)
		r = show_token(opening, conn, &hello.token);
	if (r != 0)
		return r;
	*lanes_p = wanted.lanes ? wanted.lanes : LANES_DEFAULT;
	*exact_p = wanted.lanes != 0;
	(void)gethostname(host, sizeof(host) - 1);
	user_name(user, sizeof(user));
	program_name(program);
	hello.minor = GP_VERSION_MINOR;
	hello.client_version = (char *)CLIENT_VERSION;
	hello.host = host;
	hello.user = user;
	hello.pid = (uint32_t)getpid();
	hello.program = program;
	hello.lanes = *lanes_p;
	if (gpc_program_key(key))
		hello.program_key = (ProtobufCBinaryData){ sizeof(key), key };
	hello.features = FEATURES | (wants_shm(&opening->control) ? GP_FEATURE_SHM : 0);
	if (wanted.compression == GP_PACK_OFF)
		hello.features &= ~(uint64_t)GP_FEATURE_LZ4;
	*compression_p = wanted.compression;
	hello.n_devices = (size_t)opening->device_count;
	hello.devices = (int32_t *)opening->devices;
	if (wanted.tenant)
		hello.tenant = (char *)wanted.tenant;
	wish.thread_percentage = wanted.thread_percentage;
	wish.priority = wanted.priority;
	wish.n_memory = (size_t)wanted.memory_count;
	wish.memory = wanted.memory;
	wish.isolation = (Gpupool__Isolation)wanted.isolation;
	hello.wish = &wish;
	r = gp_control_send_hello(conn, &hello);
	return r == 0 ? 0 : fail(opening, r, ": %s", gp_conn_error(conn));
}

/* The next message of the daemon, if it is of this kind. */
static int
take_message(struct opening *opening, struct gp_conn *conn,
	     Gpupool__ControlMessage__BodyCase wanted, Gpupool__ControlMessage **message_p)
{
	Gpupool__ControlMessage *message;
	char said[SAID_MAX];
	int r;

	/* For one that comes byte by byte, too. */
	gp_conn_set_deadline(conn, ANSWER_MS);
	r = gp_conn_wait(conn, ANSWER_MS);
	if (r == 0)
		return fail(opening, GP_E_TIMEOUT, ": no answer within %d s", ANSWER_MS / 1000);
	r = gp_control_recv(conn, &message);
	gp_conn_set_deadline(conn, 0);
	if (r == GP_E_EOF)
		return fail(opening, r, ": the daemon closed the connection");
	if (r != 0)
		return fail(opening, r, ": %s", gp_conn_error(conn));
	if (message->body_case == wanted) {
		*message_p = message;
		return 0;
	}
	if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED) {
		(void)gp_printable(said, sizeof(said), message->refused->text);
		r = fail(opening, GP_E_UNSUPPORTED, ": refused: %s", said);
	} else if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR) {
		(void)gp_printable(said, sizeof(said), message->session_error->text);
		r = fail(opening, GP_E_UNSUPPORTED, ": %s", said);
	} else {
		r = fail(opening, GP_E_INVALID, ": unexpected %s", gp_control_name(message));
	}
	gp_control_free(message);
	return r;
}

/* Hello is on its way.  Inside TLS the daemon's preamble has come before. */
static int
take_welcome(struct opening *opening, struct gpc_link *link, bool tls)
{
	int r = 0;

	gpc_stats_wait_begin(GPC_WAIT_HELLO);
	if (!tls)
		r = take_preamble(opening, link->control);
	if (r == 0)
		r = take_message(opening, link->control, GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME,
				 &link->welcome);
	gpc_stats_wait_end();
	return r;
}

/* The control connection up to a Welcome that makes sense. */
static int
open_control(struct opening *opening, struct gpc_link *link)
{
	bool tls = wants_tls(&opening->control), greeted;
	struct gp_preamble preamble;
	const char *what;
	int r;

	gp_preamble_init(&preamble, tls ? GP_PREAMBLE_CONTROL_TLS : GP_PREAMBLE_CONTROL, 0);
	/* In clear Hello goes out before the daemon's version is known: one round trip less. */
	r = tls ? open_secure(opening, link, &preamble)
		: connect_with(opening, &opening->control, &preamble, &link->control);
	greeted = r == 0;
	if (r == 0)
		r = send_hello(opening, link->control, &link->lanes, &link->lanes_exact,
			       &link->compression);
	/* A daemon that closed at once may have said why before our Hello bounced. */
	if (greeted && (r == -EPIPE || r == -ECONNRESET))
		r = 0;
	if (r == 0)
		r = take_welcome(opening, link, tls);
	if (r == 0 && gpc_welcome_check(link->welcome->welcome, &what) != 0)
		r = fail(opening, GP_E_INVALID, ": the daemon's welcome makes no sense (%s)", what);
	if (r == 0 && opening->device_count &&
	    link->welcome->welcome->n_devices != (size_t)opening->device_count)
		r = fail(opening, GP_E_INVALID,
			 ": %d devices were asked for and the daemon gives %zu",
			 opening->device_count, link->welcome->welcome->n_devices);
	return r;
}

/* Asks for a window that avoids all that this process has mapped. */
static int
ask_for_window(struct opening *opening, struct gpc_link *link)
{
	Gpupool__WindowRequest request = GPUPOOL__WINDOW_REQUEST__INIT;
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT, *reply;
	Gpupool__Range *avoid = NULL, **pointers = NULL;
	struct gpc_window_range *ranges;
	size_t count;
	int r = gpc_window_occupied(&ranges, &count);

	if (r != 0)
		return fail(opening, r, ": cannot read /proc/self/maps: %s", strerror(-r));
	avoid = calloc(count + 1, sizeof(*avoid));
	pointers = calloc(count + 1, sizeof(*pointers));
	for (size_t i = 0; avoid && pointers && i < count; i++) {
		gpupool__range__init(&avoid[i]);
		avoid[i].address = ranges[i].base;
		avoid[i].size = ranges[i].size;
		pointers[i] = &avoid[i];
	}
	free(ranges);
	request.n_avoid = count;
	request.avoid = pointers;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST;
	message.window_request = &request;
	r = avoid && pointers ? gp_control_send(link->control, &message) : -ENOMEM;
	free(avoid);
	free(pointers);
	if (r != 0)
		return fail(opening, r, ": %s",
			    r == -ENOMEM ? strerror(ENOMEM) : gp_conn_error(link->control));

	gpc_stats_wait_begin(GPC_WAIT_WINDOW);
	r = take_message(opening, link->control, GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REPLY,
			 &reply);
	gpc_stats_wait_end();
	if (r != 0)
		return r;
	if (gpc_window_is_sound(reply->window_reply->window, link->facts.granularity)) {
		link->facts.window_base = reply->window_reply->window->address;
		link->facts.window_size = reply->window_reply->window->size;
	} else {
		r = fail(opening, GP_E_RESOURCE,
			 ": no range of addresses is free both here and there");
	}
	gp_control_free(reply);
	return r;
}

static int
reserve_window(struct opening *opening, struct gpc_link *link)
{
	struct gpc_session_facts *facts = &link->facts;

	for (int i = 0; i < WINDOW_TRIES; i++) {
		int r = gpc_window_reserve(facts->window_base, facts->window_size);

		if (r == 0)
			return 0;
		if (r == -ENOMEM)
			return fail(opening, GP_E_RESOURCE,
				    ": the program may not reserve the %llu MiB of addresses for "
				    "device memory (ulimit -v, RLIMIT_AS)",
				    (unsigned long long)facts->window_size >> 20);
		gpc_log(GPC_LOG_INFO, "%s: %#llx bytes at %#llx are not free here", opening->text,
			(unsigned long long)facts->window_size,
			(unsigned long long)facts->window_base);
		r = ask_for_window(opening, link);
		if (r != 0)
			return r;
	}
	return fail(opening, GP_E_RESOURCE, ": no range of addresses is free both here and there");
}

/* An empty bitmap stands for all calls. */
static void
take_calls(const ProtobufCBinaryData *known, uint8_t *unknown)
{
	for (size_t i = 0; known->len > 0 && i < GP_CALL_BITMAP_SIZE; i++)
		unknown[i] = (uint8_t) ~(i < known->len ? known->data[i] : 0);
}

static bool
knows(const struct gpc_session_facts *facts, unsigned int call)
{
	return !(facts->unknown_calls[call / 8] >> call % 8 & 1);
}

/* Of a daemon from before there were data lanes: 1. */
static unsigned int
lanes_of(const struct gpc_link *link)
{
	unsigned int given = link->welcome->welcome->lanes;

	if (given < 2 || !knows(&link->facts, GP_CALL_gpCopyInLanes) ||
	    !knows(&link->facts, GP_CALL_gpCopyOutLanes))
		return 1;
	return given < link->lanes ? given : link->lanes;
}

static void
take_facts(struct gpc_link *link)
{
	const Gpupool__Welcome *welcome = link->welcome->welcome;
	const Gpupool__Limits *limits = welcome->limits;

	link->facts = (struct gpc_session_facts){
		.session_id = welcome->session_id,
		.window_base = welcome->window->address,
		.window_size = welcome->window->size,
		.granularity = limits->heap_granularity,
		.heap_size = limits->heap_size,
		.max_image_size = limits->max_image ? limits->max_image : IMAGE_DEFAULT,
		.max_bulk = limits->max_bulk && limits->max_bulk < GP_CONN_BULK_MAX
				    ? limits->max_bulk
				    : GP_CONN_BULK_MAX,
		.max_held = limits->max_held,
		.features = welcome->features & FEATURES,
		.driver_version =
			welcome->driver_version > 0 && welcome->driver_version < CUDA_VERSION
				? (int)welcome->driver_version
				: CUDA_VERSION,
		.software = welcome->software,
	};
	take_calls(&welcome->call_bitmap, link->facts.unknown_calls);
	link->lanes = lanes_of(link);
	link->max_outstanding = limits->max_outstanding == 0 ? OUTSTANDING_DEFAULT
				: limits->max_outstanding > OUTSTANDING_MAX
					? OUTSTANDING_MAX
					: (unsigned int)limits->max_outstanding;
}

/* With the key that only the daemon has besides us. */
static int
secure_lane(struct opening *opening, const uint8_t *ticket, unsigned int lane,
	    struct gp_conn **conn_p)
{
	uint8_t key[GP_TICKET_KEY_SIZE];
	int r;

	gp_ticket_key(ticket, (uint16_t)lane, key);
	gpc_stats_wait_begin(GPC_WAIT_TLS);
	r = gp_conn_secure_key(*conn_p, false, key, ANSWER_MS);
	gpc_stats_wait_end();
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		return 0;
	r = fail(opening, r, ": lane %u: %s", lane, gp_conn_error(*conn_p));
	gp_conn_destroy(*conn_p);
	*conn_p = NULL;
	return r;
}

static int
link_lane(struct opening *opening, const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
	  unsigned int lane, struct gp_conn **conn_p)
{
	bool tls = wants_tls(url), shm = strcmp(url->scheme, "shm") == 0;
	enum gp_preamble_kind kind = tls   ? GP_PREAMBLE_LANE_TLS
				     : shm ? GP_PREAMBLE_LANE_SHM
					   : GP_PREAMBLE_LANE;
	struct gp_preamble preamble;
	int r;

	gp_preamble_init(&preamble, kind, (uint16_t)lane);
	if (tls)
		gp_ticket_name(ticket, preamble.ticket);
	else
		memcpy(preamble.ticket, ticket, GP_TICKET_SIZE);
	r = connect_with(opening, url, &preamble, conn_p);
	return r == 0 && tls ? secure_lane(opening, ticket, lane, conn_p) : r;
}

int
gpc_link_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE], unsigned int lane,
	      struct gp_conn **conn_p, char *error, size_t error_size)
{
	struct opening opening = {
		.connect_ms = CONNECT_MS,
		.error = error,
		.error_size = error_size,
	};

	gp_url_format(url, opening.text, sizeof(opening.text));
	return link_lane(&opening, url, ticket, lane, conn_p);
}

/* A name can have the addresses of several daemons, and only one of these knows the session: lanes
 * go to the address that the control connection has, which is not looked up again.  For RDMA a host
 * can have an address of its own, so there the name stays. */
static void
stay_there(struct gp_url *url, const struct gp_conn *control)
{
	if (strcmp(url->scheme, "tcp") == 0 || strcmp(url->scheme, "tls") == 0)
		(void)gp_conn_peer_address(control, url->host, sizeof(url->host));
}

/* The first lane, and where the others will be. */
static int
open_lane(struct opening *opening, struct gpc_link *link)
{
	const Gpupool__Welcome *welcome = link->welcome->welcome;
	const struct gp_url *url = opening->url;
	bool either = strcmp(url->scheme, GP_URL_RDMA_OR_TCP) == 0;
	int r;

	opening->connect_ms = either ? TRY_RDMA_MS : CONNECT_MS;
	link->lanes_url = opening->control;
	if (wants_rdma(url) && welcome->rdma_port) {
		(void)snprintf(link->lanes_url.scheme, sizeof(link->lanes_url.scheme), "rdma");
		link->lanes_url.port = (uint16_t)welcome->rdma_port;
	}
	if (wants_shm(&opening->control) && welcome->features & GP_FEATURE_SHM)
		(void)snprintf(link->lanes_url.scheme, sizeof(link->lanes_url.scheme), "shm");
	stay_there(&link->lanes_url, link->control);
	if (wants_rdma(url) && !welcome->rdma_port)
		r = fail(opening, GP_E_UNSUPPORTED,
			 ": the daemon does not serve RDMA (gpupoold --listen rdma://...)");
	else
		r = link_lane(opening, &link->lanes_url, welcome->ticket.data, 0, &link->lane);
	if (r == 0 || !either)
		return r;
	gpc_log(GPC_LOG_INFO, "%s: no RDMA, the lanes go over %s: %s", opening->text,
		opening->control.scheme, opening->error);
	opening->connect_ms = CONNECT_MS;
	link->lanes_url = opening->control;
	stay_there(&link->lanes_url, link->control);
	return link_lane(opening, &link->lanes_url, welcome->ticket.data, 0, &link->lane);
}

int
gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
	      struct gpc_link *link, char *error, size_t error_size)
{
	struct opening opening = {
		.url = url,
		.devices = devices,
		.device_count = device_count,
		.connect_ms = CONNECT_MS,
		.error = error,
		.error_size = error_size,
	};
	int r;

	gp_url_format(url, opening.text, sizeof(opening.text));
	control_url(url, &opening.control);
	*link = (struct gpc_link){ 0 };
	r = gpc_token_read(&opening.token, &opening.has_token, error, error_size);
	if (r == 0)
		r = open_control(&opening, link);
	explicit_bzero(&opening.token, sizeof(opening.token));
	if (r == 0) {
		take_facts(link);
		r = reserve_window(&opening, link);
	}
	if (r == 0) {
		r = open_lane(&opening, link);
		if (r != 0)
			gpc_window_release(link->facts.window_base, link->facts.window_size);
	}
	if (r != 0)
		gpc_link_fini(link);
	return r;
}

void
gpc_link_fini(struct gpc_link *link)
{
	gp_control_free(link->welcome);
	gp_conn_destroy(link->lane);
	gp_conn_destroy(link->control);
	*link = (struct gpc_link){ 0 };
}
