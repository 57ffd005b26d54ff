/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/metrics.h"

#include "base/clock.h"
#include "server/common/base/nonblocking.h"
#include "server/supervisor/admin/metrics_text.h"
#include "server/supervisor/admission/listen.h"
#include "server/supervisor/admission/port_owner.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_SECONDS 5
/* Time that a connection has for its request before it can be closed in favor of others. */
#define NEW_MS 100
/* Maximum size of a request: its line and headers. */
#define CONNECTION_MEMORY ((size_t)8 << 10)

/* Responses. */

static enum MHD_Result
response_send(struct MHD_Connection *connection, unsigned int status, const char *type, char *text,
	      size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
	enum MHD_Result result = MHD_NO;

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	if (MHD_add_response_header(response, "Content-Type", type) == MHD_YES &&
	    MHD_add_response_header(response, "Connection", "close") == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(response, "Allow", "GET, HEAD") == MHD_YES))
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result
response_refuse(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return response_send(connection, status, "text/plain; charset=utf-8", (char *)text,
			     strlen(text), MHD_RESPMEM_PERSISTENT);
}

/* Returns NULL without memory. */
static char *
report_to_text(struct gpd_report_source *source, size_t *size_p)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, size_p);
	Gpupool__AdminReport *report;
	bool bad;

	if (!file)
		return NULL;
	/* The main thread waits for this lock, so it must not be held while blocking. */
	gpd_nonblocking_begin();
	pthread_mutex_lock(&source->lock);
	report = gpd_report_create(source, 0);
	if (report)
		gpd_metrics_write(file, report);
	gpd_report_free(report);
	pthread_mutex_unlock(&source->lock);
	gpd_nonblocking_end();
	bad = !report || ferror(file);
	bad = fclose(file) || bad;
	if (!bad)
		return text;
	free(text);
	return NULL;
}

static enum MHD_Result
request_handle(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
	       const char *version, const char *upload, size_t *upload_size, void **request)
{
	static int seen;
	struct gpd_report_source *source = arg;
	size_t size;
	char *text;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return response_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				       "method not allowed: use GET\n");
	/* libmicrohttpd calls the handler first for the headers alone. */
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	*upload_size = 0;
	if (strcmp(url, "/metrics") != 0)
		return response_refuse(connection, MHD_HTTP_NOT_FOUND, "not found: use /metrics\n");
	text = report_to_text(source, &size);
	if (!text)
		return response_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				       "the daemon has no memory for a report\n");
	return response_send(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			     text, size, MHD_RESPMEM_MUST_FREE);
}

/* Connections. */

static void
address_to_key(const struct sockaddr *from, uint8_t address[16])
{
	memset(address, 0, 16);
	if (from && from->sa_family == AF_INET) {
		memcpy(address, &((const struct sockaddr_in *)from)->sin_addr, 4);
	} else if (from && from->sa_family == AF_INET6) {
		const struct in6_addr *in6 = &((const struct sockaddr_in6 *)from)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(in6))
			memcpy(address, &in6->s6_addr[12], 4);
		else
			memcpy(address, in6, 8);
	}
}

static unsigned int
count_by_address(const struct gpd_metrics *metrics, const uint8_t address[16])
{
	unsigned int count = 0;

	for (int i = 0; i < GPD_METRICS_CONNECTIONS_MAX; i++) {
		const struct gpd_metrics_slot *slot = &metrics->slots[i];

		count += slot->connection && !slot->closing &&
			 (!address || memcmp(slot->address, address, 16) == 0);
	}
	return count;
}

/* Closes the oldest connection of the address that has most of them, unless all are new. */
static void
conn_evict(struct gpd_metrics *metrics, int64_t now_ms)
{
	const union MHD_ConnectionInfo *info;
	struct gpd_metrics_slot *victim = NULL;
	unsigned int most = 0;

	for (int i = 0; i < GPD_METRICS_CONNECTIONS_MAX; i++) {
		struct gpd_metrics_slot *slot = &metrics->slots[i];
		unsigned int count;

		if (!slot->connection || slot->closing || slot->since_ms + NEW_MS > now_ms)
			continue;
		count = count_by_address(metrics, slot->address);
		if (count < most || (count == most && victim->since_ms <= slot->since_ms))
			continue;
		victim = slot;
		most = count;
	}
	if (!victim)
		return;
	info = MHD_get_connection_info(victim->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	victim->closing = info && shutdown(info->connect_fd, SHUT_RDWR) == 0;
}

static void
conn_notify(void *arg, struct MHD_Connection *connection, void **slot_p,
	    enum MHD_ConnectionNotificationCode what)
{
	struct gpd_metrics *metrics = arg;
	struct gpd_metrics_slot *slot = *slot_p;
	const union MHD_ConnectionInfo *info;
	int64_t now_ms = gp_now_ms();

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (slot && slot->connection == connection)
			slot->connection = NULL;
		return;
	}
	if (count_by_address(metrics, NULL) >= GPD_METRICS_CONNECTIONS)
		conn_evict(metrics, now_ms);
	slot = metrics->slots;
	for (int i = 0; i < GPD_METRICS_CONNECTIONS_MAX - 1 && slot->connection; i++)
		slot++;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	*slot = (struct gpd_metrics_slot){ .connection = connection, .since_ms = now_ms };
	address_to_key(info ? info->client_addr : NULL, slot->address);
	*slot_p = slot;
}

/* Returns the listening socket, or a negative errno. */
static int
open_socket(struct gpd_metrics *metrics, bool insecure, char *error, size_t size)
{
	struct gp_url url = { .scheme = "tcp", .port = metrics->port, .device = GP_URL_ANY_DEVICE };
	const struct gp_url *bound;
	struct gp_listener *listener;
	int fd = -EACCES, r;

	(void)snprintf(url.host, sizeof(url.host), "%s", metrics->host);
	r = gp_listen(&url, &listener, error, size);
	if (r == -EADDRINUSE)
		gpd_port_describe_owner(metrics->port, error + strlen(error), size - strlen(error));
	if (r)
		return r < 0 ? r : -EINVAL;
	bound = gp_listener_url(listener);
	(void)snprintf(metrics->url, sizeof(metrics->url),
		       strchr(bound->host, ':') ? "http://[%s]:%u/metrics" : "http://%s:%u/metrics",
		       bound->host, bound->port);
	if (insecure || gpd_listen_is_loopback(listener)) {
		fd = fcntl(gp_listener_fd(listener), F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			(void)snprintf(error, size, "%s: %m", metrics->url);
	} else {
		(void)snprintf(error, size,
			       "%s is not a loopback address: any host that reaches it can read "
			       "the use of the GPUs; --insecure allows it",
			       metrics->host);
	}
	gp_listener_destroy(listener);
	return fd;
}

int
gpd_metrics_check(const char *host, uint16_t port, bool insecure, char *error, size_t error_size)
{
	struct gpd_metrics metrics = { .port = port };
	int fd;

	(void)snprintf(metrics.host, sizeof(metrics.host), "%s", host);
	fd = open_socket(&metrics, insecure, error, error_size);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EADDRINUSE ? 0 : fd;
}

int
gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source, const char *host,
		 uint16_t port, bool insecure, char *error, size_t error_size)
{
	int fd;

	*metrics = (struct gpd_metrics){ .port = port };
	(void)snprintf(metrics->host, sizeof(metrics->host), "%s", host);
	fd = open_socket(metrics, insecure, error, error_size);
	if (fd < 0)
		return fd;
	metrics->http = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, request_handle,
		source, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)GPD_METRICS_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)CONNECTION_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, conn_notify, metrics,
		MHD_OPTION_END);
	if (metrics->http)
		return 0;
	snprintf(error, error_size, "%s: the server cannot be started", metrics->url);
	close(fd);
	return -EIO;
}

void
gpd_metrics_close(struct gpd_metrics *metrics)
{
	if (metrics->http)
		MHD_stop_daemon(metrics->http);
	*metrics = (struct gpd_metrics){ .http = NULL };
}
