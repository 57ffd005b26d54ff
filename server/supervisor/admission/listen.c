/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/listen.h"

#include "protocol/preamble.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission.h"
#include "server/supervisor/admission/port_owner.h"
#include "server/supervisor/auth/tls_files.h"
#include "transport/socket/socket_owner.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Limits per iteration of the loop: on connections that are started, and on all including those
 * that are closed at once, which are cheap. */
#define ACCEPT_MAX 64
#define ACCEPT_TRIES_MAX 1024
#define ACCEPT_PAUSE_MS 50
#define ERROR_LOG_MS 10000

bool
gpd_listen_is_loopback(const struct gp_listener *listener)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	return getsockname(gp_listener_fd(listener), (struct sockaddr *)&address, &length) == 0 &&
	       gp_peer_is_loopback(&address);
}

static bool
has_certificate(void)
{
	struct gp_tls *tls = gpd_tls_get();

	gp_tls_unref(tls);
	return tls != NULL;
}

/* Returns 0, or a negative errno or GP_E_INVALID with a text in error. */
static int
listen_on(struct gpd_listen *listen, const struct gp_url *url, bool insecure, char *error,
	  size_t error_size)
{
	struct gp_url control = *url;
	struct gp_listener *listener;
	char text[GP_URL_TEXT_MAX];
	int r;

	gp_url_format(url, text, sizeof(text));
	listen->rdma[listen->count] = strcmp(url->scheme, "rdma") == 0;
	/* An rdma:// address uses TCP or TLS for control connections; the lanes connect to the
	 * worker. */
	if (listen->rdma[listen->count])
		(void)snprintf(control.scheme, sizeof(control.scheme), "%s",
			       has_certificate() ? "tls" : "tcp");
	if (strcmp(url->scheme, "tls") == 0 && !has_certificate()) {
		(void)snprintf(error, error_size,
			       "cannot listen on %s: the daemon has no certificate: create one "
			       "with gpupoolctl cert init HOST, or use --certificate and --key",
			       text);
		return GP_E_INVALID;
	}
	*error = '\0';
	r = gp_listen(&control, &listener, error, error_size);
	if (r == -EADDRINUSE && strcmp(control.scheme, "unix") != 0)
		gpd_port_describe_owner(control.port, error + strlen(error),
					error_size - strlen(error));
	if (r)
		return r;
	if (strcmp(control.scheme, "tls") != 0 && !gpd_listen_is_loopback(listener)) {
		if (!insecure) {
			(void)snprintf(
				error, error_size,
				"cannot listen on %s: it is not a loopback address, and "
				"connections are neither encrypted nor authenticated: any host "
				"that reaches it can use the GPUs; use tls://, or --insecure",
				text);
			gp_listener_destroy(listener);
			return GP_E_INVALID;
		}
		gpd_warning("%s accepts any client: connections are neither encrypted nor "
			    "authenticated (--insecure)",
			    text);
	}
	listen->listeners[listen->count++] = listener;
	return 0;
}

int
gpd_listen_check(const struct gp_url *url, bool insecure, char *error, size_t error_size)
{
	struct gpd_listen listen = { .count = 0 };
	int r = listen_on(&listen, url, insecure, error, error_size);

	gpd_listen_close(&listen);
	return r == -EADDRINUSE ? 0 : r;
}

int
gpd_listen_open(struct gpd_listen *listen, const struct gpd_options *options)
{
	char error[GP_URL_TEXT_MAX + 512];

	*listen = (struct gpd_listen){ 0 };
	for (int i = 0; i < options->listen_count; i++) {
		if (listen_on(listen, &options->listen[i], options->insecure, error,
			      sizeof(error))) {
			fprintf(stderr, "gpupoold: %s\n", error);
			gpd_listen_close(listen);
			return -1;
		}
	}
	return 0;
}

void
gpd_listen_close(struct gpd_listen *listen)
{
	while (listen->count)
		gp_listener_destroy(listen->listeners[--listen->count]);
}

void
gpd_listen_text(const struct gpd_listen *listen, int index, char text[GP_URL_TEXT_MAX])
{
	struct gp_url url = *gp_listener_url(listen->listeners[index]);

	if (listen->rdma[index])
		(void)snprintf(url.scheme, sizeof(url.scheme), "rdma");
	gp_url_format(&url, text, GP_URL_TEXT_MAX);
}

void
gpd_listen_announce(const struct gpd_listen *listen, bool print)
{
	for (int i = 0; i < listen->count; i++) {
		char text[GP_URL_TEXT_MAX];

		gpd_listen_text(listen, i, text);
		gpd_info("listening on %s", text);
		if (print)
			printf("listening on %s\n", text);
	}
	(void)fflush(stdout);
}

int
gpd_listen_poll(const struct gpd_listen *listen, int64_t now_ms, struct pollfd *fds)
{
	if (listen->accept_ms > now_ms)
		return 0;
	for (int i = 0; i < listen->count; i++)
		fds[i] = (struct pollfd){ .fd = gp_listener_fd(listen->listeners[i]),
					  .events = POLLIN };
	return listen->count;
}

/* Rate-limited: an address that uses up all descriptors must not fill the log as well. */
static void
accept_log_error(struct gpd_listen *listen, int r, int64_t now_ms)
{
	if (listen->error_log_ms > now_ms)
		return;
	listen->error_log_ms = now_ms + ERROR_LOG_MS;
	gpd_warning("cannot accept connections: %s",
		    r == GP_E_RESOURCE ? "out of descriptors or memory" : strerror(-r));
}

/* Returns whether the peer has closed a connection that is not a lane, so no session can result
 * from it (records sent on a closed lane may still count). Needs no allocation or lookup, as there
 * may be many. */
static bool
conn_is_closed(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLRDHUP };
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;

	if (poll(&poller, 1, 0) <= 0)
		return false;
	if (recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT) != sizeof(bytes))
		return true;
	return gp_preamble_decode(bytes, &preamble) || gp_preamble_is_control(&preamble);
}

static void
accept_conns(struct gpd_listen *listen, struct gp_listener *listener,
	     struct gpd_admission *admission, int64_t now_ms)
{
	const char *scheme = gp_listener_url(listener)->scheme;

	for (int i = 0, accepted = 0; i < ACCEPT_TRIES_MAX && accepted < ACCEPT_MAX; i++) {
		char peer[GP_URL_TEXT_MAX];
		int fd, r = gp_listener_accept_fd(listener, &fd, peer);

		if (r == GP_E_TIMEOUT)
			return;
		if (r == 0 && conn_is_closed(fd)) {
			close(fd);
			continue;
		}
		if (r == 0)
			r = gpd_admission_accept(admission, fd, peer, scheme);
		if (r == 0)
			accepted++;
		if (r == 0 || r == GP_E_EOF)
			continue;
		accept_log_error(listen, r, now_ms);
		listen->accept_ms = now_ms + ACCEPT_PAUSE_MS;
		return;
	}
}

void
gpd_listen_accept(struct gpd_listen *listen, const struct pollfd *fds, int count,
		  struct gpd_admission *admission, int64_t now_ms)
{
	for (int i = 0; i < count && i < listen->count; i++) {
		if (fds[i].revents)
			accept_conns(listen, listen->listeners[i], admission, now_ms);
	}
}
