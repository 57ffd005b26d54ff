/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listen.h"

#include "server/admission.h"
#include "server/log.h"
#include "server/peer.h"
#include "transport/transport.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* Connections that have not said Hello. */
#define HANDSHAKES_MAX 64
/* When there are too many, nobody is dropped who is slow only by the network's fault. */
#define SILENCE_MS 200
#define ACCEPT_PAUSE_MS 50

static bool
is_loopback_address(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)address;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
	return false;
}

/* A name that means nothing is left to gp_listen() to complain of. */
static bool
is_loopback(const struct gp_url *url)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list = NULL;
	bool loopback = true;

	if (strcmp(url->scheme, "tcp") != 0 && strcmp(url->scheme, "tls") != 0 &&
	    strcmp(url->scheme, "rdma") != 0)
		return true;
	if (strcmp(url->host, "*") == 0)
		return false;
	if (getaddrinfo(url->host, NULL, &hints, &list))
		return true;
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		loopback = loopback && is_loopback_address(a->ai_addr);
	freeaddrinfo(list);
	return loopback;
}

static int
listen_on(struct gpd_listen *listen, const struct gp_url *url, bool insecure)
{
	char text[GP_URL_TEXT_MAX], error[256] = "";

	gp_url_format(url, text, sizeof(text));
	if (!is_loopback(url)) {
		if (!insecure) {
			fprintf(stderr,
				"gpupoold: cannot listen on %s: it is not a loopback address, and "
				"connections are neither encrypted nor authenticated: whoever "
				"reaches it can use the GPUs; --insecure allows it\n",
				text);
			return -1;
		}
		gpd_warning("%s is open to everybody who can reach it: connections are neither "
			    "encrypted nor authenticated (--insecure)",
			    text);
	}
	if (gp_listen(url, &listen->listeners[listen->count], error, sizeof(error))) {
		fprintf(stderr, "gpupoold: %s\n", error);
		return -1;
	}
	listen->count++;
	return 0;
}

int
gpd_listen_open(struct gpd_listen *listen, const struct gpd_options *options)
{
	*listen = (struct gpd_listen){ 0 };
	for (int i = 0; i < options->listen_count; i++) {
		if (listen_on(listen, &options->listen[i], options->insecure)) {
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
gpd_listen_announce(const struct gpd_listen *listen, bool print)
{
	for (int i = 0; i < listen->count; i++) {
		char text[GP_URL_TEXT_MAX];

		gp_url_format(gp_listener_url(listen->listeners[i]), text, sizeof(text));
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

static void
accept_all(struct gpd_listen *listen, struct gp_listener *listener, struct gpd_admission *admission,
	   int64_t now_ms)
{
	for (;;) {
		struct gp_conn *conn;
		struct gpd_peer *peer;
		int r;

		/* Whoever has kept silent for longest makes room; the others wait in the kernel. */
		if (gpd_admission_handshakes(admission) >= HANDSHAKES_MAX &&
		    !gpd_admission_evict(admission, now_ms - SILENCE_MS)) {
			listen->accept_ms = now_ms + ACCEPT_PAUSE_MS;
			return;
		}
		r = gp_accept(listener, 0, &conn);
		if (r == GP_E_TIMEOUT)
			return;
		if (r) {
			gpd_warning("no connection can be taken at the moment: %s",
				    r == GP_E_RESOURCE ? "out of descriptors or memory"
						       : strerror(-r));
			listen->accept_ms = now_ms + ACCEPT_PAUSE_MS;
			return;
		}
		peer = gpd_peer_create(conn, gp_listener_url(listener)->scheme);
		if (peer)
			gpd_admission_add(admission, peer, now_ms);
	}
}

void
gpd_listen_accept(struct gpd_listen *listen, const struct pollfd *fds, int count,
		  struct gpd_admission *admission, int64_t now_ms)
{
	for (int i = 0; i < count && i < listen->count; i++) {
		if (fds[i].revents)
			accept_all(listen, listen->listeners[i], admission, now_ms);
	}
}
