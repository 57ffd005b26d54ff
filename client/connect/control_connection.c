/* SPDX-License-Identifier: Apache-2.0 */
/* Control connection: preambles, TLS, Hello and Welcome. */
#include "base/clock.h"
#include "client/base/config.h"
#include "client/base/stats.h"
#include "client/connect/opening.h"
#include "client/connect/program.h"
#include "client/connect/tls_files.h"
#include "gp_version.h"
#include "protocol/preamble.h"
#include "protocol/printable.h"

#include <endian.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Number of lanes requested in Hello; the number that suits the link is determined later
 * (lane_plan.h). */
#define LANES_DEFAULT 8
/* Maximum length of a daemon's text in a message. */
#define REFUSAL_MAX 256
/* Maximum time that a connection made ahead of time is kept open. */
#define AHEAD_MS 150

/* The peer answered a TLS request without TLS. It may send a reason for its refusal; everything
 * else that it sends unencrypted is ignored, as the peer is not authenticated. */
static int
plain_refusal_recv(struct gpc_opening *opening, struct gp_conn *conn)
{
	Gpupool__ControlMessage *message = NULL;
	uint8_t bytes[GP_CONN_PREAMBLE_MAX];
	char refusal[REFUSAL_MAX];
	uint32_t frame[2];
	int r = gp_conn_recv_preamble(conn, frame, sizeof(frame), gpc_opening_limit_ms());

	if (r == 0 && frame[1] == 0 && le32toh(frame[0]) <= sizeof(bytes) &&
	    gp_conn_recv_preamble(conn, bytes, le32toh(frame[0]), gpc_opening_limit_ms()) == 0)
		message = gp_control_decode(bytes, le32toh(frame[0]));
	if (message && message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED) {
		(void)gp_printable_text(refusal, sizeof(refusal), message->refused->text);
		r = gpc_opening_fail(opening, GP_E_UNSUPPORTED,
				     ": refused, by an unauthenticated reply: %s", refusal);
	} else {
		r = gpc_opening_fail(opening, GP_E_UNSUPPORTED, ": the daemon offers no TLS there");
	}
	gp_control_free(message);
	return r;
}

static int
preamble_recv(struct gpc_opening *opening, struct gp_conn *conn)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	int r = gp_conn_recv_preamble(conn, bytes, sizeof(bytes), gpc_opening_limit_ms());

	if (r == GP_E_TIMEOUT)
		return gpc_opening_fail_timeout(
			opening, conn,
			"the daemon hangs or is very busy, or another program listens there");
	if (r == GP_E_EOF || r == -ECONNRESET)
		return gpc_opening_fail(
			opening, GP_E_FOREIGN,
			" is not a gpupool daemon, or it closed the connection at once");
	if (r != 0)
		return gpc_opening_fail(opening, r, ": %s", gp_conn_error(conn));
	r = gp_preamble_decode(bytes, &preamble);
	if (r == GP_E_VERSION)
		return gpc_opening_fail(opening, r,
					": the daemon speaks protocol %u, this client %u",
					preamble.major, GP_VERSION_MAJOR);
	if (r != 0 || !gp_preamble_is_control(&preamble))
		return gpc_opening_fail(opening, GP_E_FOREIGN, " is not a gpupool daemon");
	if (gpc_url_wants_tls(&opening->control) && !gp_preamble_is_tls(&preamble))
		return plain_refusal_recv(opening, conn);
	return 0;
}

/* The daemon replies to the preamble without doing any work, so this measures the round-trip time
 * of the link. */
static int
preamble_recv_first(struct gpc_opening *opening, struct gpc_link *link, uint64_t sent_ns)
{
	int r = preamble_recv(opening, link->control);

	if (r == 0)
		link->round_trip_ns = gp_now_ns() - sent_ns;
	return r;
}

/* Starts TLS on the control connection. The handshake follows the preamble without waiting for its
 * reply. */
static int
control_secure(struct gpc_opening *opening, struct gpc_link *link, struct gp_tls *tls,
	       uint64_t sent_ns)
{
	int begun = gp_conn_secure_start(link->control, tls, opening->url->host);
	/* A daemon that closed the connection at once may have sent a reason. */
	int r = begun == 0 || begun == -EPIPE || begun == -ECONNRESET
			? preamble_recv_first(opening, link, sent_ns)
			: begun;

	if (r == 0 && begun == 0)
		begun = gp_conn_secure(link->control, tls, opening->url->host,
				       gpc_opening_limit_ms());
	if (begun != 0 && (r == 0 || r == begun))
		r = gpc_opening_fail(
			opening, begun, ": %s%s", gp_conn_error(link->control),
			begun == -EACCES && !gpc_tls_has_authority(&opening->credentials)
				? ": the pool's certificate is in the token's file "
				  "(GPUPOOL_TOKEN_FILE), or in one that GPUPOOL_TLS_CA names"
				: "");
	return r;
}

/* Messages on this connection always fit in the peer's buffers, so only a failed network can block
 * sending: the send timeout may then end the connection. */
static int
control_open(struct gpc_opening *opening, struct gpc_link *link, const struct gp_preamble *preamble)
{
	int r = gpc_opening_connect(opening, &opening->control, preamble, &link->control);

	if (r == 0)
		gp_conn_set_send_timeout(link->control, gpc_config_timeout_ms());
	return r;
}

/* Opens the connection up to the point where Hello is sent inside TLS. */
static int
control_open_secure(struct gpc_opening *opening, struct gpc_link *link,
		    const struct gp_preamble *preamble)
{
	struct gp_tls *tls = NULL;
	char why[384] = "";
	int r = gpc_tls_read(&opening->credentials, &tls, why, sizeof(why));

	if (r != 0)
		return gpc_opening_fail(opening, r, ": %s", why);
	r = control_open(opening, link, preamble);
	if (r == 0) {
		gpc_stats_wait_start(GPC_WAIT_TLS);
		r = control_secure(opening, link, tls, gp_now_ns());
		gpc_stats_wait_stop();
	}
	gp_tls_unref(tls);
	return r;
}

static void
program_get_name(char name[32])
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
user_get_name(char *name, size_t size)
{
	struct passwd entry, *found = NULL;
	char buffer[1024];

	if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found)
		(void)snprintf(name, size, "%s", entry.pw_name);
	else
		(void)snprintf(name, size, "%u", (unsigned int)geteuid());
}

/* Adds the token, if there is one. It is sent only over an encrypted or local connection. */
static int
hello_add_token(struct gpc_opening *opening, const struct gp_conn *conn, ProtobufCBinaryData *data)
{
	if (!opening->has_token)
		return 0;
	if (!(gp_conn_caps(conn) & (GP_CONN_CAP_ENCRYPTED | GP_CONN_CAP_LOCAL)))
		return gpc_opening_fail(opening, GP_E_INVALID,
					": the connection is not encrypted, so the token of %s%s "
					"is not sent; tls:// is "
					"encrypted",
					*opening->credentials.pool ? "pool " : "GPUPOOL_TOKEN_FILE",
					opening->credentials.pool);
	data->data = (uint8_t *)opening->token.text;
	data->len = GP_TOKEN_LENGTH;
	return 0;
}

static int
hello_send(struct gpc_opening *opening, struct gp_conn *conn, unsigned int *lanes_p, bool *exact_p,
	   enum gp_pack_mode *compression_p)
{
	Gpupool__SessionWish wish = GPUPOOL__SESSION_WISH__INIT;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	char host[256] = "", user[64] = "", program[32] = "";
	uint8_t key[GPC_PROGRAM_KEY_SIZE];
	struct gpc_session_options wanted;
	int r = gpc_config_session_options(&wanted, opening->error, opening->error_size);

	if (r == 0)
		r = hello_add_token(opening, conn, &hello.token);
	if (r != 0)
		return r;
	*lanes_p = wanted.lanes ? wanted.lanes : LANES_DEFAULT;
	*exact_p = wanted.lanes != 0;
	(void)gethostname(host, sizeof(host) - 1);
	user_get_name(user, sizeof(user));
	program_get_name(program);
	hello.look = opening->probe;
	if (opening->waiting) {
		hello.wait = opening->waiting->number;
		hello.patience_ms = opening->waiting->max_wait_ms;
	}
	hello.minor = GP_VERSION_MINOR;
	hello.client_version = (char *)GP_VERSION;
	hello.host = host;
	hello.user = user;
	hello.pid = (uint32_t)getpid();
	hello.program = program;
	hello.lanes = *lanes_p;
	if (gpc_program_key(key))
		hello.program_key = (ProtobufCBinaryData){ sizeof(key), key };
	hello.features = GPC_FEATURES | (gpc_url_wants_shm(&opening->control) ? GP_FEATURE_SHM : 0);
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
	opening->wants_tenant_worker = wanted.isolation == GPC_ISOLATION_TENANT;
	hello.wish = &wish;
	r = gp_control_send_hello(conn, &hello);
	return r == 0 ? 0 : gpc_opening_fail(opening, r, ": %s", gp_conn_error(conn));
}

int
gpc_opening_recv_message(struct gpc_opening *opening, struct gp_conn *conn,
			 Gpupool__ControlMessage__BodyCase wanted,
			 Gpupool__ControlMessage **message_p)
{
	Gpupool__ControlMessage *message;
	char refusal[REFUSAL_MAX];
	int r;

	/* Also limits a message that arrives byte by byte. */
	gp_conn_set_deadline(conn, GPC_WELCOME_MS);
	r = gp_conn_wait(conn, GPC_WELCOME_MS);
	if (r == 0)
		return gpc_opening_fail(opening, GP_E_TIMEOUT, ": no answer within %d s",
					GPC_WELCOME_MS / 1000);
	r = gp_control_recv(conn, &message);
	gp_conn_set_deadline(conn, 0);
	if (r == GP_E_EOF)
		return gpc_opening_fail(opening, r, ": the daemon closed the connection");
	if (r != 0)
		return gpc_opening_fail(opening, r, ": %s", gp_conn_error(conn));
	if (message->body_case == wanted) {
		*message_p = message;
		return 0;
	}
	if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_REFUSED) {
		(void)gp_printable_text(refusal, sizeof(refusal), message->refused->text);
		r = gpc_opening_fail(opening, GP_E_UNSUPPORTED, ": refused: %s", refusal);
		opening->full = message->refused->reason == GPUPOOL__REFUSED__REASON__FULL ||
				message->refused->reason == GPUPOOL__REFUSED__REASON__SHUTTING_DOWN;
	} else if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR) {
		(void)gp_printable_text(refusal, sizeof(refusal), message->session_error->text);
		r = gpc_opening_fail(opening, GP_E_UNSUPPORTED, ": %s", refusal);
	} else {
		r = gpc_opening_fail(opening, GP_E_INVALID, ": unexpected %s",
				     gp_control_get_name(message));
	}
	gp_control_free(message);
	return r;
}

/* Hello has been sent. With TLS the daemon's preamble has already been received. */
static int
welcome_recv(struct gpc_opening *opening, struct gpc_link *link, bool tls, uint64_t sent_ns)
{
	int r = 0;

	gpc_stats_wait_start(GPC_WAIT_HELLO);
	if (!tls)
		r = preamble_recv_first(opening, link, sent_ns);
	if (r == 0 && opening->probe) {
		r = gpc_opening_recv_message(opening, link->control,
					     GPUPOOL__CONTROL_MESSAGE__BODY_ACCOUNT,
					     &link->welcome);
		gpc_stats_wait_stop();
		return r;
	}
	if (r == 0)
		gpc_first_lane_connect_finish(opening, link->control);
	/* If there is no session slot yet, the connection would waste resources of the daemon. */
	if (r == 0 && gp_conn_wait(link->control, AHEAD_MS) == 0)
		gpc_first_lane_drop(opening);
	if (r == 0)
		r = gpc_opening_recv_message(opening, link->control,
					     GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME,
					     &link->welcome);
	gpc_stats_wait_stop();
	return r;
}

int
gpc_control_connection_open(struct gpc_opening *opening, struct gpc_link *link)
{
	bool tls = gpc_url_wants_tls(&opening->control), handshaken;
	struct gp_preamble preamble;
	const char *what;
	uint64_t sent_ns;
	int r;

	gp_preamble_init(&preamble, tls ? GP_PREAMBLE_CONTROL_TLS : GP_PREAMBLE_CONTROL, 0);
	/* Without TLS Hello is sent before the daemon's version is known, which saves a round
	 * trip. */
	r = tls ? control_open_secure(opening, link, &preamble)
		: control_open(opening, link, &preamble);
	sent_ns = gp_now_ns();
	handshaken = r == 0;
	if (r == 0)
		r = hello_send(opening, link->control, &link->lanes, &link->lanes_exact,
			       &link->compression);
	/* A daemon that closed the connection at once may have sent a reason before sending Hello
	 * failed. */
	if (handshaken && (r == -EPIPE || r == -ECONNRESET))
		r = 0;
	if (r == 0) {
		if (!opening->probe)
			gpc_first_lane_connect_start(opening, link->control);
		r = welcome_recv(opening, link, tls, sent_ns);
	}
	if (opening->probe)
		return r;
	if (r == 0 && gpc_welcome_check(link->welcome->welcome, &what) != 0)
		r = gpc_opening_fail(opening, GP_E_INVALID,
				     ": the daemon's welcome is invalid (%s)", what);
	if (r == 0 && opening->wants_tenant_worker &&
	    !(link->welcome->welcome->features & GP_FEATURE_TENANT_WORKERS))
		r = gpc_opening_fail(opening, GP_E_VERSION,
				     ": the daemon, version %.32s, does not know "
				     "GPUPOOL_ISOLATION=tenant: update it, or use session",
				     link->welcome->welcome->server_version);
	if (r == 0 && opening->device_count &&
	    link->welcome->welcome->n_devices != (size_t)opening->device_count)
		r = gpc_opening_fail(opening, GP_E_INVALID,
				     ": %d devices were requested and the daemon reports %zu",
				     opening->device_count, link->welcome->welcome->n_devices);
	return r;
}
