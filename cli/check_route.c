/* SPDX-License-Identifier: Apache-2.0 */
/* check: the connection to a daemon, tested step by step, to find the step that fails. */
#include "base/clock.h"
#include "cli/check.h"
#include "client/connect/credentials.h"
#include "ctl/certificate.h"
#include "ctl/value.h"
#include "protocol/preamble.h"
#include "protocol/printable.h"
#include "transport/tls/openssl.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 5000
#define ANSWER_S 5
#define DAY_S 86400
/* A certificate that expires within this time is reported. */
#define SOON_S (14 * DAY_S)

static void
address_text(const struct addrinfo *address, char *text, size_t size)
{
	if (getnameinfo(address->ai_addr, address->ai_addrlen, text, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST))
		(void)snprintf(text, size, "?");
}

static struct addrinfo *
host_resolve(const struct gp_url *url)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char port[8], text[64], list[512] = "";
	int r;

	(void)snprintf(port, sizeof(port), "%u", url->port);
	r = getaddrinfo(url->host, port, &hints, &found);
	if (r) {
		check_print(CHECK_ERROR, "name",
			    "%s: %s; check the name in the address, /etc/hosts and the name server",
			    url->host, r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
		return NULL;
	}
	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		address_text(at, text, sizeof(text));
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			       at == found ? "" : ", ", text);
	}
	check_print(CHECK_OK, "name", "%s is %s", url->host, list);
	return found;
}

/* Returns a connected socket, or a negative errno. */
static int
address_connect(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd poller = { .fd = fd, .events = POLLOUT };
	int failed = 0;
	socklen_t size = sizeof(failed);

	if (fd < 0)
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS)
		failed = errno;
	else if (poll(&poller, 1, CONNECT_MS) == 0)
		failed = ETIMEDOUT;
	else
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	if (failed) {
		(void)close(fd);
		return -failed;
	}
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

static const char *
errno_get_remedy(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "no daemon listens there: check the port, and that gpupoold runs and "
		       "listens "
		       "for other machines (--listen)";
	case ETIMEDOUT:
		return "a firewall may drop what goes there: the port must be open";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "no route to this address: check network and routes";
	default:
		return "check network and firewall";
	}
}

/* Connects to the first address that accepts; -1: none does. */
static int
route_connect(const struct gp_url *url, const struct addrinfo *addresses)
{
	char text[64];
	int fd = -1, failed = 0;

	for (const struct addrinfo *at = addresses; at; at = at->ai_next) {
		uint64_t begin_ns = gp_now_ns();

		address_text(at, text, sizeof(text));
		fd = address_connect(at);
		if (fd >= 0) {
			check_print(CHECK_OK, "route", "%s port %u answers after %.2f ms", text,
				    url->port, (double)(gp_now_ns() - begin_ns) / 1e6);
			return fd;
		}
		failed = -fd;
		if (at->ai_next)
			check_print(CHECK_NOTE, "route", "%s port %u: %s", text, url->port,
				    strerror(failed));
	}
	check_print(CHECK_ERROR, "route", "%s port %u: %s; %s", text, url->port, strerror(failed),
		    errno_get_remedy(failed));
	return -1;
}

static bool
receive_all(int fd, uint8_t *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = recv(fd, bytes + used, size - used, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		used += (size_t)got;
	}
	return true;
}

/* Returns whether the peer speaks gpupool's protocol, with TLS as expected. */
static bool
preamble_exchange(int fd, bool tls)
{
	const struct timeval timeout = { .tv_sec = ANSWER_S };
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	char text[256];
	int r;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	gp_preamble_init(&preamble, tls ? GP_PREAMBLE_CONTROL_TLS : GP_PREAMBLE_CONTROL, 0);
	gp_preamble_encode(&preamble, bytes);
	errno = 0;
	if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes) ||
	    !receive_all(fd, bytes, sizeof(bytes))) {
		if (errno == EAGAIN)
			check_print(CHECK_ERROR, "daemon",
				    "no answer within %d s: the daemon hangs or is very busy, or "
				    "another program listens there; check its log and the port",
				    ANSWER_S);
		else
			check_print(CHECK_ERROR, "daemon",
				    "the listener is not gpupoold; check the port (4833 unless the "
				    "daemon has another)");
		return false;
	}
	r = gp_preamble_decode(bytes, &preamble);
	if (r) {
		gp_preamble_format_status(r, &preamble, text, sizeof(text));
		check_print(CHECK_ERROR, "daemon", "%s%s", text,
			    r == GP_E_VERSION
				    ? "; install the same version of gpupool on both machines"
				    : "; check the port");
		return false;
	}
	if (gp_preamble_is_tls(&preamble) != tls) {
		check_print(
			CHECK_ERROR, "daemon",
			tls ? "no TLS at this address; use the daemon's address with TLS, or tcp://"
			    : "this address requires TLS: use tls://");
		return false;
	}
	check_print(CHECK_OK, "daemon", "speaks gpupool's protocol %u.%u%s", preamble.major,
		    preamble.minor, tls ? ", with TLS" : ", unencrypted");
	return true;
}

static bool
certificate_names_host(X509 *certificate, const char *host)
{
	return X509_check_host(certificate, host, 0, 0, NULL) == 1 ||
	       X509_check_ip_asc(certificate, host, 0) == 1;
}

/* Whether the authority is trusted is tested by check_account(), which connects as a program
 * does. */
static void
check_certificate(X509 *certificate, const struct gp_url *url)
{
	struct ctl_certificate_facts facts;
	char hosts[CTL_CERTIFICATE_NAMES_MAX], from_text[CTL_VALUE_MAX], until_text[CTL_VALUE_MAX];
	char now_text[CTL_VALUE_MAX];
	const char *from, *until, *now;
	int64_t now_s = (int64_t)time(NULL);

	if (ctl_certificate_describe(certificate, &facts))
		return;
	(void)gp_printable_text(hosts, sizeof(hosts), *facts.hosts ? facts.hosts : facts.name);
	from = ctl_format_date((uint64_t)facts.from_s, from_text);
	until = ctl_format_date((uint64_t)facts.until_s, until_text);
	now = ctl_format_date((uint64_t)now_s, now_text);
	if (!certificate_names_host(certificate, url->host))
		check_print(CHECK_ERROR, "certificate",
			    "is for %s, not for %s; use one of these names in the address, or "
			    "create one for this name: gpupoolctl cert init ... --force",
			    hosts, url->host);
	else if (now_s < facts.from_s)
		check_print(
			CHECK_ERROR, "certificate",
			"is valid from %s on, and it is %s here; check the clocks of both machines",
			from, now);
	else if (now_s >= facts.until_s)
		check_print(CHECK_ERROR, "certificate",
			    "has expired: %s, and it is %s here; run gpupoolctl cert init ... "
			    "--force, or check this machine's clock",
			    until, now);
	else
		check_print(facts.until_s - now_s < SOON_S ? CHECK_NOTE : CHECK_OK, "certificate",
			    "is for %s, until %s", hosts, until);
}

/* Reads remaining data until the peer closes the connection. */
static void
socket_drain(int fd)
{
	uint8_t bytes[4096];

	(void)shutdown(fd, SHUT_WR);
	for (int i = 0; i < 4 && recv(fd, bytes, sizeof(bytes), 0) > 0; i++)
		continue;
}

static void
tls_handshake(int fd, const struct gp_url *url)
{
	SSL_CTX *context;
	SSL *ssl;
	X509 *certificate = NULL;
	char why[256] = "it ended";

	if (!gp_openssl_open()) {
		check_print(CHECK_ERROR, "certificate", "%s", gp_openssl_get_error());
		return;
	}
	context = SSL_CTX_new(TLS_client_method());
	ssl = context ? SSL_new(context) : NULL;
	if (ssl && SSL_set_fd(ssl, fd) == 1) {
		/* The certificate is only inspected, and no application data is sent, so it need
		 * not be verified. */
		SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
		if (SSL_connect(ssl) == 1)
			certificate = SSL_get1_peer_certificate(ssl);
		else if (ERR_peek_error())
			ERR_error_string_n(ERR_get_error(), why, sizeof(why));
	}
	if (certificate)
		check_certificate(certificate, url);
	else
		check_print(CHECK_ERROR, "certificate",
			    "the TLS handshake fails: %s; see the daemon's log", why);
	/* An orderly shutdown, as the daemon would log an aborted one. */
	if (certificate && SSL_shutdown(ssl) >= 0)
		socket_drain(fd);
	ERR_clear_error();
	X509_free(certificate);
	SSL_free(ssl);
	SSL_CTX_free(context);
}

bool
check_route(const struct gp_url *url)
{
	bool rdma = strncmp(url->scheme, "rdma", 4) == 0;
	struct gpc_credentials credentials;
	struct addrinfo *addresses;
	char error[768];
	bool good = false, tls;
	int fd;

	/* An error (several token files for the address) is reported by check_token(). */
	(void)!gpc_credentials_find(url, &credentials, error, sizeof(error));
	tls = strcmp(url->scheme, "tls") == 0 || (rdma && gpc_credentials_any(&credentials));
	gpc_credentials_fini(&credentials);
	/* A local socket has no host name or route; its errors are reported when it is opened. */
	if (strcmp(url->scheme, "tcp") != 0 && !rdma && !tls)
		return true;
	addresses = host_resolve(url);
	fd = addresses ? route_connect(url, addresses) : -1;
	if (fd >= 0) {
		good = preamble_exchange(fd, tls);
		if (good && tls)
			tls_handshake(fd, url);
		(void)close(fd);
	}
	if (addresses)
		freeaddrinfo(addresses);
	return good;
}
