/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoold: serves the GPUs of this machine to clients of other machines.
 *
 * The process that is started is the supervisor.  It listens, admits clients and never touches
 * CUDA.  It runs one worker, a copy of this program started with --worker-fd, which opens the
 * driver, owns the contexts and serves all sessions.  The two talk over a socket pair; the
 * connections that carry calls and data are handed to the worker as descriptors.  When a client's
 * kernel ruins the worker's contexts, which only a new process repairs, the sessions are told, the
 * worker ends, and the supervisor starts another one.
 */
#include "protocol/frame.h"
#include "protocol/standard.h"
#include "server/common/base/log.h"
#include "server/common/base/privilege.h"
#include "server/common/config/options.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/supervisor.h"
#include "server/worker/device/window.h"
#include "server/worker/worker.h"
#include "transport/transport.h"
#include "transport/url.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN_DEFAULT "tcp://127.0.0.1:4833"
#define SESSIONS_LIMIT 4096

/* libc looks for it by this name. */
__attribute__((visibility("default"))) const char *argp_program_version = "gpupoold " GPD_VERSION;

enum key {
	OPTION_LISTEN = 'l',
	OPTION_DRIVER = 'd',
	OPTION_PRINT_ADDRESS = 0x100,
	OPTION_INSECURE,
	OPTION_PEER_MEMORY,
	OPTION_MAX_SESSIONS,
	OPTION_LANES,
	OPTION_LOG_LEVEL,
	OPTION_ADMIN_SOCKET,
	OPTION_METRICS,
	OPTION_TOKENS,
	OPTION_CERTIFICATE,
	OPTION_KEY,
	OPTION_CLIENT_AUTHORITY,
	OPTION_CRL,
	OPTION_USER,
	OPTION_WORKER_FD,
	OPTION_LEDGER_FD,
	OPTION_WORKER_RDMA,
	OPTION_CONFIG = 'c',
};

static const struct argp_option options[] = {
	{ .name = "listen",
	  .key = OPTION_LISTEN,
	  .arg = "ADDRESS",
	  .doc = "Listen there, [SCHEME://]HOST[:PORT]; may be given several times. Port 0 takes "
		 "any free one; unix:///PATH is a socket of this machine. "
		 "Default: " LISTEN_DEFAULT },
	{ .name = "config",
	  .key = OPTION_CONFIG,
	  .arg = "FILE",
	  .doc = "Tenants, quotas and devices, gpupoold.conf(5); SIGHUP reads it again. Default: "
		 "none, everybody may use everything" },
	{ .name = "driver",
	  .key = OPTION_DRIVER,
	  .arg = "FILE",
	  .doc = "The CUDA driver library to serve. Default: NVIDIA's libcuda.so.1, or, "
		 "where there is none or no GPU, the software device" },
	{ .name = "max-sessions",
	  .key = OPTION_MAX_SESSIONS,
	  .arg = "N",
	  .doc = "Serve at most N clients at a time. Default: what the configuration says, or "
		 "256" },
	{ .name = "lanes",
	  .key = OPTION_LANES,
	  .arg = "N",
	  .doc = "Let a client have at most N connections for calls and data. Default: what the "
		 "configuration says, or 4, and 8 if they are encrypted" },
	{ .name = "peer-memory",
	  .key = OPTION_PEER_MEMORY,
	  .arg = "auto|off",
	  .doc = "Over RDMA, let the network card read and write GPU memory in large copies where "
		 "GPU, driver and card can (auto, the default), or never" },
	{ .name = "insecure",
	  .key = OPTION_INSECURE,
	  .doc = "Let everybody in without credentials, also over connections that are not "
		 "encrypted, on whatever address" },
	{ .name = "tokens",
	  .key = OPTION_TOKENS,
	  .arg = "FILE",
	  .doc = "The tokens of clients, as gpupoolctl token makes them. Default: what the "
		 "configuration says, or tokens in /etc/gpupool for root, in "
		 "~/.config/gpupool for others" },
	{ .name = "certificate",
	  .key = OPTION_CERTIFICATE,
	  .arg = "FILE",
	  .doc = "What the daemon shows on addresses with TLS (tls://), PEM. Default: what the "
		 "configuration says, or server.pem in /etc/gpupool for root, in "
		 "~/.config/gpupool for others" },
	{ .name = "key",
	  .key = OPTION_KEY,
	  .arg = "FILE",
	  .doc = "The certificate's key, PEM. Default: likewise, server.key" },
	{ .name = "client-authority",
	  .key = OPTION_CLIENT_AUTHORITY,
	  .arg = "FILE",
	  .doc = "Whose client certificates are good, PEM. Default: likewise, ca.pem" },
	{ .name = "crl",
	  .key = OPTION_CRL,
	  .arg = "FILE",
	  .doc = "Which client certificates are revoked, PEM, as gpupoolctl cert revoke makes it. "
		 "Default: likewise, ca.crl" },
	{ .name = "user",
	  .key = OPTION_USER,
	  .arg = "NAME",
	  .doc = "The user that the daemon of root becomes, as soon as it has opened its sockets "
		 "and read its key. Default: gpupool, if there is such a user" },
	{ .name = "print-address",
	  .key = OPTION_PRINT_ADDRESS,
	  .doc = "Print a line \"listening on URL\" for every address as soon as clients are "
		 "served" },
	{ .name = "log-level",
	  .key = OPTION_LOG_LEVEL,
	  .arg = "LEVEL",
	  .doc = "error, warning, info (the default) or debug, which also shows every call" },
	{ .name = "admin-socket",
	  .key = OPTION_ADMIN_SOCKET,
	  .arg = "PATH",
	  .doc = "Where gpupoolctl finds the daemon; off: nowhere. Default: "
		 "/run/gpupool/admin.sock for root, gpupool/admin.sock below XDG_RUNTIME_DIR for "
		 "others" },
	{ .name = "metrics",
	  .key = OPTION_METRICS,
	  .arg = "[HOST:]PORT",
	  .doc = "Answer Prometheus there; a port alone is one of 127.0.0.1. Default: off" },
	{ .name = "worker-fd", .key = OPTION_WORKER_FD, .arg = "FD", .flags = OPTION_HIDDEN },
	{ .name = "worker-rdma", .key = OPTION_WORKER_RDMA, .arg = "URL", .flags = OPTION_HIDDEN },
	{ .name = "ledger-fd", .key = OPTION_LEDGER_FD, .arg = "FD", .flags = OPTION_HIDDEN },
	{ 0 },
};

static const char doc[] =
	"Serve the GPUs of this machine to CUDA programs on other machines."
	"\vClients find the daemon by REMOTE_GPU=HOST[:PORT] in their environment, with gpupool's "
	"libcuda.so.1 in their library path.\n\n"
	"The log goes to standard error. SIGTERM ends all sessions and the daemon.";

struct command_line {
	struct gpd_options supervisor;
	int worker_fd;
	int ledger_fd;
};

static int
parse_number(struct argp_state *state, const char *option, const char *text, int min, int max)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == 0 || *end || value < min || value > max)
		argp_failure(state, 1, 0, "%s: \"%s\" is not a number from %d to %d", option, text,
			     min, max);
	return (int)value;
}

/* Lanes over RDMA come to the worker, at the same address: on a port of its own, but it is this one
 * that it names if it cannot listen. */
static void
add_rdma(struct argp_state *state, struct gpd_options *o, const struct gp_url *url)
{
	static char text[GP_URL_TEXT_MAX];

	if (o->rdma)
		argp_failure(state, 1, 0, "--listen: only one address can be rdma://");
	gp_url_format(url, text, sizeof(text));
	o->rdma = text;
}

static void
add_listen(struct argp_state *state, struct gpd_options *o, const char *text)
{
	struct gp_url *url = &o->listen[o->listen_count];
	char error[512];

	if (o->listen_count == GPD_LISTEN_MAX)
		argp_failure(state, 1, 0, "--listen: more than %d addresses", GPD_LISTEN_MAX);
	else if (gp_url_parse(text, url, error, sizeof(error)))
		argp_failure(state, 1, 0, "--listen: %s", error);
	else if (url->device != GP_URL_ANY_DEVICE)
		argp_failure(state, 1, 0,
			     "--listen: \"%s\": an address to listen on has no device, /%d: who "
			     "may use which the configuration says",
			     text, url->device);
	else if (strcmp(url->scheme, "rdma") == 0)
		add_rdma(state, o, url);
	o->listen_count++;
}

/* Where an option goes that is taken as it stands; NULL: it is none of these. */
static const char **
text_of(struct gpd_options *o, int key)
{
	switch (key) {
	case OPTION_CONFIG:
		return &o->config;
	case OPTION_DRIVER:
		return &o->driver;
	case OPTION_ADMIN_SOCKET:
		return &o->admin_socket;
	case OPTION_USER:
		return &o->user;
	case OPTION_TOKENS:
		return &o->tokens;
	case OPTION_CERTIFICATE:
		return &o->certificate;
	case OPTION_KEY:
		return &o->key;
	case OPTION_CLIENT_AUTHORITY:
		return &o->client_authority;
	case OPTION_CRL:
		return &o->crl;
	case OPTION_WORKER_RDMA:
		return &o->rdma;
	default:
		return NULL;
	}
}

/* The others with a value. */
static error_t
parse_value(int key, const char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;
	struct gpd_options *o = &line->supervisor;

	switch (key) {
	case OPTION_LISTEN:
		add_listen(state, o, arg);
		return 0;
	case OPTION_PEER_MEMORY:
		o->no_peer_memory = strcmp(arg, "off") == 0;
		if (!o->no_peer_memory && strcmp(arg, "auto") != 0)
			argp_failure(state, 1, 0, "--peer-memory: \"%s\" is neither auto nor off",
				     arg);
		return 0;
	case OPTION_MAX_SESSIONS:
		o->sessions_max = parse_number(state, "--max-sessions", arg, 1, SESSIONS_LIMIT);
		return 0;
	case OPTION_LANES:
		o->lanes_max = parse_number(state, "--lanes", arg, 1, GP_LANES_MAX);
		return 0;
	case OPTION_LOG_LEVEL:
		if (!gpd_log_level_parse(arg, &gpd_log_level))
			argp_failure(state, 1, 0,
				     "--log-level: \"%s\" is none of error, warning, info, debug",
				     arg);
		return 0;
	case OPTION_METRICS:
		o->metrics_given = true;
		if (!gpd_metrics_parse(arg, o->metrics_host, &o->metrics_port))
			argp_failure(state, 1, 0,
				     "--metrics: \"%s\" is no address to listen on "
				     "(9400, 127.0.0.1:9400, [::1]:9400 or off)",
				     arg);
		return 0;
	case OPTION_WORKER_FD:
		line->worker_fd = parse_number(state, "--worker-fd", arg, 3, INT_MAX);
		return 0;
	case OPTION_LEDGER_FD:
		line->ledger_fd = parse_number(state, "--ledger-fd", arg, 3, INT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t
parse_option(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;
	struct gpd_options *o = &line->supervisor;
	const char **text = text_of(o, key);

	if (text) {
		*text = arg;
		return 0;
	}
	switch (key) {
	case OPTION_PRINT_ADDRESS:
		o->print_address = true;
		return 0;
	case OPTION_INSECURE:
		o->insecure = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_failure(state, 1, 0, "\"%s\": an argument that means nothing here", arg);
		return 0;
	case ARGP_KEY_END:
		if (o->listen_count == 0)
			add_listen(state, o, LISTEN_DEFAULT);
		return 0;
	default:
		return parse_value(key, arg, state);
	}
}

/* Those of which a wrong value would be taken for none. */
static bool
check_environment(void)
{
	static const char stall[] = "GPUPOOL_STALL_MS", window[] = "GPUPOOL_WINDOW_SIZE";
	const char *name = NULL, *wrong;
	uint64_t size;
	unsigned int ms;

	if (!gp_conn_stall_parse(getenv(stall), &ms)) {
		name = stall;
		wrong = "no number of milliseconds (0: without limit)";
	} else if (!gpd_window_size_parse(getenv(window), &size)) {
		name = window;
		wrong = "no number of bytes from 16777216 (16 MiB) to 4398046511104 (4 TiB)";
	}
	if (name)
		(void)fprintf(stderr, "gpupoold: %s=%s: %s\n", name, getenv(name), wrong);
	return !name;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse_option, .doc = doc };
	struct command_line line = {
		.worker_fd = -1,
		.ledger_fd = -1,
	};

	if (gp_standard_open())
		return 1;
	argp_err_exit_status = 1;
	if (argp_parse(&argp, argc, argv, 0, NULL, &line))
		return 1;
	gpd_privilege_hide();
	if (line.worker_fd >= 0) {
		struct gpd_worker_options worker = {
			.fd = line.worker_fd,
			.ledger_fd = line.ledger_fd,
			.driver = line.supervisor.driver,
			.rdma = line.supervisor.rdma,
			.peer_memory = !line.supervisor.no_peer_memory,
		};

		return gpd_worker_run(&worker);
	}
	if (!check_environment())
		return 1;
	return gpd_supervisor_run(&line.supervisor);
}
