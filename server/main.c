/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoold: serves the GPUs of this machine to clients on other machines.
 *
 * The process that is started is the supervisor. It listens, admits clients and never uses CUDA. It
 * runs workers, copies of this program started with --worker-fd, which load the driver, own the
 * contexts and run the sessions. The supervisor and a worker communicate over a socket pair, by
 * which the supervisor also passes the descriptors of connections for calls and data. If a client's
 * kernel corrupts a worker's contexts, which only a new process can recover from, the clients of
 * its sessions are notified, the worker exits, and the supervisor starts another one. The device
 * monitor, a copy of this program started with --monitor, reports GPUs that fail.
 */
#include "protocol/frame.h"
#include "protocol/standard_fds.h"
#include "server/common/base/device_list.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/privilege.h"
#include "server/common/config/config_value.h"
#include "server/common/config/options.h"
#include "server/monitor/monitor.h"
#include "server/supervisor/config_report.h"
#include "server/supervisor/supervisor.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "server/worker/host/host_arena.h"
#include "server/worker/issue/issue.h"
#include "server/worker/worker.h"
#include "transport/timeout.h"
#include "transport/url.h"

#include <argp.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTEN_DEFAULT "tcp://127.0.0.1:4833"
#define SESSIONS_LIMIT 4096
/* Of 1000: before the supervisor, whose end would end all sessions. */
#define WORKER_OOM_SCORE 500

/* argp looks for a variable of this name. */
__attribute__((visibility("default"))) const char *argp_program_version = "gpupoold " GPD_VERSION;

enum option_key {
	OPTION_LISTEN = 'l',
	OPTION_DRIVER = 'd',
	OPTION_PRINT_ADDRESS = 0x100,
	OPTION_INSECURE,
	OPTION_PEER_MEMORY,
	OPTION_SYSCALL_FILTER,
	OPTION_SOFTWARE_DEVICE,
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
	OPTION_WORKER_CONNECTIONS,
	OPTION_LEDGER_FD,
	OPTION_WORKER_RDMA,
	OPTION_DEVICES,
	OPTION_MONITOR,
	OPTION_CONFIG = 'c',
	OPTION_CHECK_CONFIG = 0x200,
};

#define OPTION(option, value, argument, flag, text)                                                \
	{                                                                                          \
		.name = (option), .key = (value), .arg = (argument), .flags = (flag),              \
		.doc = (text)                                                                      \
	}

static const struct argp_option options[] = {
	OPTION("listen", OPTION_LISTEN, "ADDRESS", 0,
	       "Listen on [SCHEME://]HOST[:PORT]; may be given several times. A port alone means "
	       "127.0.0.1, and port 0 any free port; unix:///PATH is a local socket. "
	       "Default: " LISTEN_DEFAULT),
	OPTION("config", OPTION_CONFIG, "FILE", 0,
	       "Tenants, quotas and devices, gpupoold.conf(5); SIGHUP reads it again. Default: "
	       "gpupoold.conf in /etc/gpupool for root, in ~/.config/gpupool for others; without "
	       "it clients have no limits"),
	OPTION("check-config", OPTION_CHECK_CONFIG, NULL, 0,
	       "Read the configuration (FILE, or that of --config, or the default one), report "
	       "errors and warnings, and exit with status 0 if it is valid"),
	OPTION("driver", OPTION_DRIVER, "FILE", 0,
	       "The CUDA driver library to serve. Default: NVIDIA's libcuda.so.1, or, "
	       "where there is none or no GPU, the software device"),
	OPTION("software-device", OPTION_SOFTWARE_DEVICE, "on|off", 0,
	       "Without a working NVIDIA driver serve the software device, which runs kernels on "
	       "the CPU (on), or do not start (off). Default: that of the configuration, or on; "
	       "the packaged service: off"),
	OPTION("max-sessions", OPTION_MAX_SESSIONS, "N", 0,
	       "Serve at most N sessions at a time. Default: that of the configuration, or 256"),
	OPTION("lanes", OPTION_LANES, "N", 0,
	       "At most N connections of a client for calls and data. Default: that of the "
	       "configuration, or 8"),
	OPTION("peer-memory", OPTION_PEER_MEMORY, "auto|off", 0,
	       "Over RDMA, let the network card read and write GPU memory in large copies where "
	       "GPU, driver and card support it (auto, the default), or never (off)"),
	OPTION("syscall-filter", OPTION_SYSCALL_FILTER, "on|log|off", 0,
	       "Let system calls fail that workers do not need once they have started (on, the "
	       "default), only have the kernel log them (log), or neither (off)"),
	OPTION("insecure", OPTION_INSECURE, NULL, 0,
	       "Accept clients without credentials, also over unencrypted connections, on any "
	       "address"),
	OPTION("tokens", OPTION_TOKENS, "FILE", 0,
	       "The tokens of clients, created by gpupoolctl token. Default: that of the "
	       "configuration, or tokens in /etc/gpupool for root, in ~/.config/gpupool for "
	       "others"),
	OPTION("certificate", OPTION_CERTIFICATE, "FILE", 0,
	       "The daemon's certificate for addresses with TLS (tls://), PEM. Default: that of "
	       "the configuration, or server.pem in /etc/gpupool for root, in ~/.config/gpupool "
	       "for others"),
	OPTION("key", OPTION_KEY, "FILE", 0,
	       "The certificate's key, PEM. Default: likewise, server.key"),
	OPTION("client-authority", OPTION_CLIENT_AUTHORITY, "FILE", 0,
	       "The authority of client certificates, PEM. Default: likewise, ca.pem"),
	OPTION("crl", OPTION_CRL, "FILE", 0,
	       "The CRL of client certificates, PEM, created by gpupoolctl cert revoke. Default: "
	       "likewise, ca.crl"),
	OPTION("user", OPTION_USER, "NAME", 0,
	       "If started as root, change to this user after opening sockets and reading the key. "
	       "Default: gpupool, if that user exists"),
	OPTION("print-address", OPTION_PRINT_ADDRESS, NULL, 0,
	       "Print a line \"listening on URL\" for every address as soon as clients are "
	       "served"),
	OPTION("log-level", OPTION_LOG_LEVEL, "LEVEL", 0,
	       "error, warning, info (the default) or debug, which also shows every call"),
	OPTION("admin-socket", OPTION_ADMIN_SOCKET, "PATH", 0,
	       "The socket of gpupoolctl, or off. Default: /run/gpupool/admin.sock for root, "
	       "gpupool/admin.sock below XDG_RUNTIME_DIR for others"),
	OPTION("metrics", OPTION_METRICS, "[HOST:]PORT", 0,
	       "Serve Prometheus metrics there; a port alone means 127.0.0.1. Default: off"),
	OPTION("worker-fd", OPTION_WORKER_FD, "FD", OPTION_HIDDEN, NULL),
	OPTION("worker-rdma", OPTION_WORKER_RDMA, "URL", OPTION_HIDDEN, NULL),
	OPTION("worker-connections", OPTION_WORKER_CONNECTIONS, "NUMBER", OPTION_HIDDEN, NULL),
	OPTION("ledger-fd", OPTION_LEDGER_FD, "FD", OPTION_HIDDEN, NULL),
	OPTION("devices", OPTION_DEVICES, "LIST", OPTION_HIDDEN, NULL),
	OPTION("monitor", OPTION_MONITOR, NULL, OPTION_HIDDEN, NULL),
	{ 0 },
};

static const char args_doc[] = "\n--check-config [FILE]";

static const char doc[] =
	"Serve the GPUs of this machine to CUDA programs on other machines."
	"\vClients find the daemon by REMOTE_GPU=HOST[:PORT] in their environment, with gpupool's "
	"libcuda.so.1 in their library path.\n\n"
	"The log goes to standard error. SIGTERM ends all sessions and the daemon.";

struct command_line {
	struct gpd_options supervisor;
	bool check_config;
	const char *file; /* positional argument, or NULL */
	int worker_fd;
	int worker_connections;
	int ledger_fd;
	enum gpd_syscall_filter_mode syscall_filter;
	struct gpd_device_list devices; /* of a worker or the device monitor */
	bool monitor;
};

static bool
syscall_filter_parse(const char *text, enum gpd_syscall_filter_mode *mode_p)
{
	static const char *const names[] = {
		[GPD_SYSCALL_FILTER_ON] = "on",
		[GPD_SYSCALL_FILTER_LOG] = "log",
		[GPD_SYSCALL_FILTER_OFF] = "off",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) == 0) {
			*mode_p = (enum gpd_syscall_filter_mode)i;
			return true;
		}
	}
	return false;
}

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

/* Lanes over RDMA connect to the worker at the same host, but on a port of its own; this address is
 * used in its error messages if it cannot listen. */
static void
listen_add_rdma(struct argp_state *state, struct gpd_options *o, const struct gp_url *url)
{
	static char text[GP_URL_TEXT_MAX];

	if (o->rdma)
		argp_failure(state, 1, 0, "--listen: only one address can be rdma://");
	gp_url_format(url, text, sizeof(text));
	o->rdma = text;
}

/* A port alone means 127.0.0.1, as with --metrics; no host name consists of digits only. */
static const char *
address_complete(const char *text, char buffer[GP_URL_TEXT_MAX])
{
	const char *slashes = strstr(text, "://"), *host = slashes ? slashes + 3 : text;

	if (!*host || host[strspn(host, "0123456789")])
		return text;
	(void)snprintf(buffer, GP_URL_TEXT_MAX, "%.*s127.0.0.1:%s", (int)(host - text), text, host);
	return buffer;
}

static void
listen_add(struct argp_state *state, struct gpd_options *o, const char *given)
{
	struct gp_url *url = &o->listen[o->listen_count];
	char error[512], buffer[GP_URL_TEXT_MAX];
	const char *text = address_complete(given, buffer);

	if (o->listen_count == GPD_LISTEN_MAX)
		argp_failure(state, 1, 0, "--listen: more than %d addresses", GPD_LISTEN_MAX);
	else if (gp_url_parse(text, url, error, sizeof(error)))
		argp_failure(state, 1, 0, "--listen: %s", error);
	else if (url->device != GP_URL_ANY_DEVICE)
		argp_failure(state, 1, 0,
			     "--listen: \"%s\": an address to listen on has no device, /%d: use "
			     "the configuration to assign devices",
			     text, url->device);
	else if (strcmp(url->scheme, "rdma") == 0)
		listen_add_rdma(state, o, url);
	o->listen_count++;
}

/* Options whose value is stored as a string. */
static const struct {
	int option_key;
	size_t offset; /* in struct gpd_options */
} texts[] = {
	{ OPTION_CONFIG, offsetof(struct gpd_options, config) },
	{ OPTION_DRIVER, offsetof(struct gpd_options, driver) },
	{ OPTION_ADMIN_SOCKET, offsetof(struct gpd_options, admin_socket) },
	{ OPTION_USER, offsetof(struct gpd_options, user) },
	{ OPTION_TOKENS, offsetof(struct gpd_options, tokens) },
	{ OPTION_CERTIFICATE, offsetof(struct gpd_options, certificate) },
	{ OPTION_KEY, offsetof(struct gpd_options, key) },
	{ OPTION_CLIENT_AUTHORITY, offsetof(struct gpd_options, client_authority) },
	{ OPTION_CRL, offsetof(struct gpd_options, crl) },
	{ OPTION_WORKER_RDMA, offsetof(struct gpd_options, rdma) },
};

/* Other options with a value. */
static error_t
parse_value(int option_key, const char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;
	struct gpd_options *o = &line->supervisor;
	const char *wrong;

	switch (option_key) {
	case OPTION_LISTEN:
		listen_add(state, o, arg);
		return 0;
	case OPTION_PEER_MEMORY:
		o->no_peer_memory = strcmp(arg, "off") == 0;
		if (!o->no_peer_memory && strcmp(arg, "auto") != 0)
			argp_failure(state, 1, 0, "--peer-memory: \"%s\" is neither auto nor off",
				     arg);
		return 0;
	case OPTION_SYSCALL_FILTER:
		o->syscall_filter = arg;
		if (!syscall_filter_parse(arg, &line->syscall_filter))
			argp_failure(state, 1, 0,
				     "--syscall-filter: \"%s\" is not one of on, log, off", arg);
		return 0;
	case OPTION_SOFTWARE_DEVICE:
		if (!gpd_options_software_parse(arg, &o->software_device))
			argp_failure(state, 1, 0, "--software-device: \"%s\" is neither on nor off",
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
			argp_failure(
				state, 1, 0,
				"--log-level: \"%s\" is not one of error, warning, info, debug",
				arg);
		return 0;
	case OPTION_METRICS:
		o->has_metrics = true;
		wrong = gpd_value_parse_metrics(arg, 0, o->metrics_host, sizeof(o->metrics_host),
						&o->metrics_port);
		if (wrong)
			argp_failure(state, 1, 0, "--metrics: \"%s\" %s", arg, wrong);
		return 0;
	case OPTION_WORKER_FD:
		line->worker_fd = parse_number(state, "--worker-fd", arg, 3, INT_MAX);
		return 0;
	case OPTION_WORKER_CONNECTIONS:
		line->worker_connections =
			parse_number(state, "--worker-connections", arg, 1, GPD_CONNECTIONS_MAX);
		return 0;
	case OPTION_DEVICES:
		if (!gpd_device_list_parse(arg, &line->devices))
			argp_failure(state, 1, 0, "--devices: \"%s\" is not a list of devices",
				     arg);
		return 0;
	case OPTION_LEDGER_FD:
		line->ledger_fd = parse_number(state, "--ledger-fd", arg, 3, INT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t
parse_option(int option_key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;
	struct gpd_options *o = &line->supervisor;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].option_key == option_key) {
			*(const char **)((char *)o + texts[i].offset) = arg;
			return 0;
		}
	}
	switch (option_key) {
	case OPTION_PRINT_ADDRESS:
		o->print_address = true;
		return 0;
	case OPTION_INSECURE:
		o->insecure = true;
		return 0;
	case OPTION_MONITOR:
		line->monitor = true;
		return 0;
	case OPTION_CHECK_CONFIG:
		line->check_config = true;
		return 0;
	case ARGP_KEY_ARG:
		if (line->file)
			argp_failure(state, 1, 0, "\"%s\": unexpected argument", arg);
		line->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (line->file && !line->check_config)
			argp_failure(state, 1, 0, "\"%s\": unexpected argument", line->file);
		if (line->file)
			o->config = line->file;
		if (o->listen_count == 0)
			listen_add(state, o, LISTEN_DEFAULT);
		return 0;
	default:
		return parse_value(option_key, arg, state);
	}
}

/* Checks the environment variables whose invalid values would otherwise be ignored. */
static bool
environment_check(void)
{
	static const char window[] = "GPUPOOL_WINDOW_SIZE", piece[] = "GPUPOOL_HOST_PIECE_MIB",
			  launchers[] = "GPUPOOL_LAUNCHERS";
	const char *device = getenv(GPD_SOFTWARE_VARIABLE);
	const char *name = NULL, *wrong;
	enum gpd_config_software software;
	uint64_t size;
	unsigned int ms, count;
	char text[256];
	bool given;

	if (gp_timeout_parse(getenv(GP_TIMEOUT_NAME), getenv(GP_TIMEOUT_OLD_NAME), &ms, &given,
			     text, sizeof(text))) {
		(void)fprintf(stderr, "gpupoold: %s\n", text);
		return false;
	}
	if (*text)
		gpd_warning("%s", text);
	if (!gpd_window_size_parse(getenv(window), &size)) {
		name = window;
		wrong = "not a number of bytes from 16777216 (16 MiB) to 4398046511104 (4 TiB)";
	} else if (!gpd_host_registration_parse(getenv(piece), &size)) {
		name = piece;
		wrong = "not a number of MiB from 1 to 64";
	} else if (!gpd_issue_parse(getenv(launchers), &count)) {
		name = launchers;
		wrong = "not a number of threads (0: the executors launch)";
	} else if (device && !gpd_options_software_parse(device, &software)) {
		name = GPD_SOFTWARE_VARIABLE;
		wrong = "neither on nor off";
	}
	if (name)
		(void)fprintf(stderr, "gpupoold: %s=%s: %s\n", name, getenv(name), wrong);
	return !name;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_option, .args_doc = args_doc, .doc = doc
	};
	struct command_line line = {
		.supervisor.software_device = GPD_CONFIG_SOFTWARE_UNSET,
		.worker_fd = -1,
		.worker_connections = GPD_CONNECTIONS_MAX,
		.ledger_fd = -1,
		.devices = { .used = UINT32_MAX, .contexts = UINT32_MAX },
	};

	if (gp_stdio_ensure_open())
		return 1;
	argp_err_exit_status = 1;
	if (argp_parse(&argp, argc, argv, 0, NULL, &line))
		return 1;
	if (line.worker_fd >= 0)
		gpd_privilege_raise_oom_score(WORKER_OOM_SCORE);
	gpd_privilege_disable_dumps();
	gpd_log_start();
	if (line.monitor) {
		const struct gpd_monitor_options monitor = {
			.fd = line.worker_fd,
			.devices = &line.devices,
			.library = line.supervisor.driver,
		};

		return gpd_monitor_run(&monitor);
	}
	if (line.worker_fd >= 0) {
		struct gpd_worker_options worker = {
			.fd = line.worker_fd,
			.ledger_fd = line.ledger_fd,
			.connections = line.worker_connections,
			.devices = &line.devices,
			.driver = line.supervisor.driver,
			.software = line.supervisor.software_device != GPD_CONFIG_SOFTWARE_OFF,
			.rdma = line.supervisor.rdma,
			.peer_memory = !line.supervisor.no_peer_memory,
			.syscall_filter = line.syscall_filter,
		};

		return gpd_worker_run(&worker);
	}
	if (!environment_check())
		return 1;
	if (gpd_folder_file(GPD_FILE_CONFIG, line.supervisor.usual_config,
			    sizeof(line.supervisor.usual_config)))
		line.supervisor.usual_config[0] = 0;
	if (line.check_config)
		return gpd_config_report_check(&line.supervisor, gpd_driver_list);
	return gpd_supervisor_run(&line.supervisor);
}
