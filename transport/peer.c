/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

/* "0100007F:12E1" or its IPv6 kin, as in /proc/net/tcp. */
#define NAME_SIZE 40
#define TCP_STATE_ESTABLISHED 1

bool
gp_peer_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_UNIX)
		return true;
	if (address->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)address;

		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	if (address->ss_family == AF_INET6) {
		const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(in6) ||
		       (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET);
	}
	return false;
}

/* The address as an IPv6 one, which an IPv4 one is a case of. */
static void
widen(const struct sockaddr_storage *address, uint32_t words[4], uint16_t *port_p)
{
	if (address->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

		memcpy(words, &in6->sin6_addr, 16);
		*port_p = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)address;

		words[0] = words[1] = 0;
		words[2] = htonl(0xffff);
		words[3] = in->sin_addr.s_addr;
		*port_p = ntohs(in->sin_port);
	}
}

static void
name_of(const struct sockaddr_storage *address, bool wide, char name[NAME_SIZE])
{
	uint32_t words[4];
	uint16_t port;

	widen(address, words, &port);
	if (wide)
		snprintf(name, NAME_SIZE, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2],
			 words[3], port);
	else
		snprintf(name, NAME_SIZE, "%08X:%04X", words[3], port);
}

/* The socket whose own name is `local` and whose peer is `remote`, in the kernel's list. */
static int
find_owner(const char *path, const char *local, const char *remote, uid_t *uid_p)
{
	char line[512];
	FILE *list = fopen(path, "re");
	int r = GP_E_UNSUPPORTED;

	if (!list)
		return r;
	while (r && fgets(line, sizeof(line), list)) {
		char own[NAME_SIZE], peer[NAME_SIZE];
		unsigned int state, uid;

		/* Only of an established socket the owner is what it seems: a closed one's is 0. */
		if (sscanf(line, " %*u: %39s %39s %x %*s %*s %*s %u", own, peer, &state, &uid) !=
			    4 ||
		    state != TCP_STATE_ESTABLISHED || strcmp(own, local) != 0 ||
		    strcmp(peer, remote) != 0)
			continue;
		*uid_p = uid;
		r = 0;
	}
	fclose(list);
	return r;
}

static int
unix_peer_uid(int fd, uid_t *uid_p)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return GP_E_UNSUPPORTED;
	*uid_p = credentials.uid;
	return 0;
}

int
gp_peer_uid(int fd, uid_t *uid_p)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
	char local[NAME_SIZE], remote[NAME_SIZE];
	int r = GP_E_UNSUPPORTED;

	if (getsockname(fd, (struct sockaddr *)&own, &own_length) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_length) < 0)
		return r;
	if (peer.ss_family == AF_UNIX)
		return unix_peer_uid(fd, uid_p);
	if (!gp_peer_is_loopback(&peer))
		return r;
	if (peer.ss_family == AF_INET || ((struct sockaddr_in6 *)&peer)->sin6_addr.s6_addr[10]) {
		name_of(&peer, false, local);
		name_of(&own, false, remote);
		r = find_owner("/proc/net/tcp", local, remote, uid_p);
	}
	if (r) {
		name_of(&peer, true, local);
		name_of(&own, true, remote);
		r = find_owner("/proc/net/tcp6", local, remote, uid_p);
	}
	return r;
}
