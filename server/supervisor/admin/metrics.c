/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/metrics.h"

#include "server/common/base/log.h"
#include "server/common/config/config_value.h"
#include "server/supervisor/admin/metrics_text.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16
#define CONNECTION_SECONDS 5
/* Of a request: its line and headers. */
#define CONNECTION_MEMORY ((size_t)8 << 10)

bool
gpd_metrics_parse(const char *text, char host[GPD_METRICS_HOST_MAX], uint16_t *port_p)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;
	size_t length;

	if (gpd_value_metrics(text, host, GPD_METRICS_HOST_MAX, port_p) == NULL)
		return true;
	/* What a configuration cannot say: port 0. */
	if (!gpd_value_number(colon ? colon + 1 : text, 0, 0, &port))
		return false;
	length = colon ? (size_t)(colon - text) : 0;
	if (colon && (length == 0 || length >= GPD_METRICS_HOST_MAX || memchr(text, ':', length)))
		return false;
	snprintf(host, GPD_METRICS_HOST_MAX, "%.*s", colon ? (int)length : 9,
		 colon ? text : "127.0.0.1");
	*port_p = (uint16_t)port;
	return true;
}

/* Answers. */

static enum MHD_Result
answer(struct MHD_Connection *connection, unsigned int status, const char *type, char *text,
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
refuse(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", (char *)text, strlen(text),
		      MHD_RESPMEM_PERSISTENT);
}

/* NULL: no memory. */
static char *
write_text(struct gpd_report_source *source, size_t *size_p)
{
	Gpupool__AdminReport *report;
	char *text = NULL;
	FILE *file;
	bool bad;

	pthread_mutex_lock(&source->lock);
	report = gpd_report_create(source, 0);
	pthread_mutex_unlock(&source->lock);
	file = report ? open_memstream(&text, size_p) : NULL;
	if (!file) {
		gpd_report_free(report);
		return NULL;
	}
	gpd_metrics_write(file, report);
	bad = ferror(file);
	gpd_report_free(report);
	if (fclose(file) == 0 && !bad)
		return text;
	free(text);
	return NULL;
}

static enum MHD_Result
handle(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
       const char *version, const char *upload, size_t *upload_size, void **request)
{
	static int seen;
	struct gpd_report_source *source = arg;
	size_t size;
	char *text;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			      "metrics are to be read only\n");
	/* The first call is for the headers alone. */
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	*upload_size = 0;
	if (strcmp(url, "/metrics") != 0)
		return refuse(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
	text = write_text(source, &size);
	if (!text)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "the daemon has no memory for a report\n");
	return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
		      size, MHD_RESPMEM_MUST_FREE);
}

/* What clients send is no event of the daemon's log. */
static void
log_debug(void *arg, const char *format, va_list args)
{
	char text[256];

	(void)vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = 0;
	gpd_debug("metrics: %s", text);
}

/* The socket. */

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static int
listen_on(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, CONNECTIONS_MAX) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int
open_socket(const char *host, uint16_t port, bool insecure, char *error, size_t size)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *list;
	bool any = strcmp(host, "*") == 0;
	char service[8];
	int fd, r;

	snprintf(service, sizeof(service), "%u", port);
	if (any)
		hints.ai_family = AF_INET6;
	r = getaddrinfo(any ? NULL : host, service, &hints, &list);
	if (r) {
		snprintf(error, size, "%s: %s", host, gai_strerror(r));
		return -EINVAL;
	}
	if (!insecure && !is_loopback(list->ai_addr)) {
		snprintf(error, size,
			 "%s is not a loopback address: whoever reaches it can read who uses the "
			 "GPUs; --insecure allows it",
			 host);
		freeaddrinfo(list);
		return -EACCES;
	}
	fd = listen_on(list);
	freeaddrinfo(list);
	if (fd < 0)
		snprintf(error, size, "%s:%u: %s", host, port, strerror(-fd));
	return fd;
}

static void
describe(struct gpd_metrics *metrics, int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

	if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
		(void)getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port,
				  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(metrics->url, sizeof(metrics->url),
		 strchr(host, ':') ? "http://[%.200s]:%.8s/metrics" : "http://%.200s:%.8s/metrics",
		 host, port);
}

int
gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source, const char *host,
		 uint16_t port, bool insecure, char *error, size_t error_size)
{
	int fd = open_socket(host, port, insecure, error, error_size);

	*metrics = (struct gpd_metrics){ .port = port };
	if (fd < 0)
		return fd;
	snprintf(metrics->host, sizeof(metrics->host), "%s", host);
	describe(metrics, fd);
	metrics->http = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		handle, source, MHD_OPTION_EXTERNAL_LOGGER, log_debug, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)CONNECTION_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		CONNECTION_MEMORY, MHD_OPTION_END);
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
