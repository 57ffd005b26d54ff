/* SPDX-License-Identifier: Apache-2.0 */
/* Table of backends, and connecting and listening by URL. */
#include "transport/transport.h"

#include "transport/backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct gp_transport_ops *const backends[] = {
	&gp_tcp_ops, &gp_unix_ops, &gp_shm_ops, &gp_tls_ops, &gp_rdma_ops,
};

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns NULL for an unknown scheme. */
static const struct gp_transport_ops *
backend_find(const char *scheme)
{
	for (size_t i = 0; i < ARRAY_COUNT(backends); i++)
		if (strcmp(backends[i]->scheme, scheme) == 0)
			return backends[i];
	return NULL;
}

static void
error_format(const struct gp_url *url, const char *what, int r, const char *detail, char *error,
	     size_t error_size)
{
	char text[GP_URL_TEXT_MAX];

	gp_url_format(url, text, sizeof(text));
	errno = -r;
	if (detail[0])
		snprintf(error, error_size, "cannot %s %s: %s", what, text, detail);
	else
		snprintf(error, error_size, "cannot %s %s: %m", what, text);
}

int
gp_connect(const struct gp_url *url, const void *preamble, size_t preamble_size, int timeout_ms,
	   struct gp_conn **conn_p, char *error, size_t error_size)
{
	const struct gp_transport_ops *ops = backend_find(url->scheme);
	char detail[160] = "";
	struct gp_conn *conn;
	int r;

	if (!ops || preamble_size > GP_CONN_PREAMBLE_MAX) {
		snprintf(error, error_size, "unknown scheme \"%s\", or preamble too large",
			 url->scheme);
		return GP_E_INVALID;
	}
	if (ops->connect_with)
		r = ops->connect_with(url, preamble, preamble_size, timeout_ms, &conn, detail,
				      sizeof(detail));
	else
		r = ops->connect(ops, url, timeout_ms, &conn, detail, sizeof(detail));
	if (r) {
		error_format(url, "connect to", r, detail, error, error_size);
		return r;
	}
	gp_url_format(url, conn->peer, sizeof(conn->peer));
	if (preamble_size && !ops->connect_with)
		r = ops->send_preamble(conn, preamble, preamble_size);
	if (r) {
		error_format(url, "connect to", r, gp_conn_error(conn), error, error_size);
		gp_conn_destroy(conn);
		return r;
	}
	*conn_p = conn;
	return 0;
}

int
gp_connect_start(const struct gp_conn *conn, int *fd_p)
{
	return conn->ops->connect_start ? conn->ops->connect_start(conn, fd_p) : GP_E_UNSUPPORTED;
}

int
gp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms, struct gp_conn **conn_p)
{
	return conn->ops->connect_finish(conn, fd, timeout_ms, conn_p);
}

static int
backend_listen(const struct gp_url *url, uint16_t port, struct gp_listener **listener_p,
	       char *error, size_t error_size)
{
	const struct gp_transport_ops *ops = backend_find(url->scheme);
	struct gp_url at = *url;
	char detail[160] = "";
	int r;

	if (!ops) {
		snprintf(error, error_size, "unknown scheme \"%s\"", url->scheme);
		return GP_E_INVALID;
	}
	at.port = port;
	r = ops->listen(ops, &at, listener_p, detail, sizeof(detail));
	if (r)
		error_format(url, "listen on", r, detail, error, error_size);
	return r;
}

int
gp_listen(const struct gp_url *url, struct gp_listener **listener_p, char *error, size_t error_size)
{
	return backend_listen(url, url->port, listener_p, error, error_size);
}

int
gp_listen_any_port(const struct gp_url *url, struct gp_listener **listener_p, char *error,
		   size_t error_size)
{
	return backend_listen(url, 0, listener_p, error, error_size);
}

int
gp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p)
{
	return listener->ops->accept(listener, timeout_ms, conn_p);
}

int
gp_listener_accept_fd(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX])
{
	return listener->ops->accept_fd ? listener->ops->accept_fd(listener, fd_p, peer)
					: GP_E_UNSUPPORTED;
}

void
gp_listener_set_admit(struct gp_listener *listener,
		      bool (*admit)(void *arg, const char *peer, const void *preamble, size_t size),
		      void *arg)
{
	listener->admit = admit;
	listener->admit_arg = arg;
}

int
gp_listener_fd(const struct gp_listener *listener)
{
	return listener->ops->listener_fd(listener);
}

const struct gp_url *
gp_listener_url(const struct gp_listener *listener)
{
	return &listener->url;
}

void
gp_listener_destroy(struct gp_listener *listener)
{
	if (listener)
		listener->ops->listener_destroy(listener);
}

int
gp_conn_adopt(const char *scheme, int fd, struct gp_conn **conn_p)
{
	const struct gp_transport_ops *ops = backend_find(scheme);

	if (!ops)
		return GP_E_INVALID;
	return ops->adopt ? ops->adopt(ops, fd, conn_p) : GP_E_UNSUPPORTED;
}
