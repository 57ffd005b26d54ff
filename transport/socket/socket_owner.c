/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "0100007F:12E1" or the IPv6 form, as in /proc/net/tcp. */
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

/* Converts an address to IPv6; an IPv4 address becomes IPv4-mapped. */
static void
address_to_ipv6(const struct sockaddr_storage *address, uint32_t words[4], uint16_t *port_p)
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
address_format(const struct sockaddr_storage *address, bool wide, char name[NAME_SIZE])
{
	uint32_t words[4];
	uint16_t port;

	address_to_ipv6(address, words, &port);
	if (wide)
		snprintf(name, NAME_SIZE, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2],
			 words[3], port);
	else
		snprintf(name, NAME_SIZE, "%08X:%04X", words[3], port);
}

/* Finds the socket with these local and remote addresses in the kernel's list. */
static int
list_find_owner(const char *path, const char *local, const char *remote, uid_t *uid_p)
{
	char line[512];
	FILE *list = fopen(path, "re");
	int r = GP_E_UNSUPPORTED;

	if (!list)
		return r;
	while (r && fgets(line, sizeof(line), list)) {
		char own[NAME_SIZE], peer[NAME_SIZE];
		unsigned int state, uid;

		/* Only an established socket has a reliable owner; that of a closed one is 0. */
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

/* Addresses of both ends of a connection, from this end's view. */
struct socket_ends {
	struct sockaddr_storage own, peer;
};

static int
get_ends(int fd, struct socket_ends *socket_ends)
{
	socklen_t own_length = sizeof(socket_ends->own), peer_length = sizeof(socket_ends->peer);

	*socket_ends = (struct socket_ends){ 0 };
	return getsockname(fd, (struct sockaddr *)&socket_ends->own, &own_length) < 0 ||
	       getpeername(fd, (struct sockaddr *)&socket_ends->peer, &peer_length) < 0;
}

/* The kernel stores an IPv4-mapped address as IPv4. */
static void
address_to_diag(const struct sockaddr_storage *address, uint32_t words[4], __be16 *port_p,
		uint8_t *family_p)
{
	struct in6_addr wide;
	uint16_t port;

	address_to_ipv6(address, words, &port);
	memcpy(&wide, words, sizeof(wide));
	*port_p = htons(port);
	*family_p = AF_INET6;
	if (IN6_IS_ADDR_V4MAPPED(&wide)) {
		words[0] = words[3];
		words[1] = words[2] = words[3] = 0;
		*family_p = AF_INET;
	}
}

/* Queries the kernel for a single socket. */
static int
netlink_query(int netlink, const void *request, size_t size, struct inet_diag_msg *found)
{
	struct sockaddr_nl from = { 0 };
	socklen_t from_size = sizeof(from);
	struct {
		struct nlmsghdr header;
		struct inet_diag_msg found;
		uint8_t more[1024];
	} answer = { 0 };
	ssize_t got;

	if (send(netlink, request, size, MSG_DONTWAIT) != (ssize_t)size)
		return GP_E_UNSUPPORTED;
	/* The kernel replies before send() returns. */
	got = recvfrom(netlink, &answer, sizeof(answer), MSG_DONTWAIT, (struct sockaddr *)&from,
		       &from_size);
	if (got < (ssize_t)(sizeof(answer.header) + sizeof(answer.found)) || from.nl_pid != 0 ||
	    answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return GP_E_UNSUPPORTED;
	*found = answer.found;
	return 0;
}

/* Returns the owner of the socket at the other end, which is on this machine. */
static int
kernel_query_owner(const struct socket_ends *socket_ends, uid_t *uid_p)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 wanted;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.wanted = { .sdiag_protocol = IPPROTO_TCP,
			    .idiag_states = 1U << TCP_STATE_ESTABLISHED,
			    .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	struct inet_diag_sockid *id = &request.wanted.id;
	struct inet_diag_msg found;
	uint8_t family;
	int netlink, r;

	address_to_diag(&socket_ends->peer, id->idiag_src, &id->idiag_sport, &family);
	address_to_diag(&socket_ends->own, id->idiag_dst, &id->idiag_dport,
			&request.wanted.sdiag_family);
	if (family != request.wanted.sdiag_family)
		return GP_E_UNSUPPORTED;
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (netlink < 0)
		return GP_E_UNSUPPORTED;
	r = netlink_query(netlink, &request, sizeof(request), &found);
	close(netlink);
	/* The result may be a listener instead. Only an established socket has a reliable owner;
	 * that of a closed one is 0. */
	if (r || found.idiag_state != TCP_STATE_ESTABLISHED ||
	    found.id.idiag_sport != id->idiag_sport || found.id.idiag_dport != id->idiag_dport)
		return GP_E_UNSUPPORTED;
	*uid_p = found.idiag_uid;
	return 0;
}

static bool
ends_are_same_address(const struct socket_ends *socket_ends)
{
	uint32_t own[4], peer[4];
	uint16_t port;

	address_to_ipv6(&socket_ends->own, own, &port);
	address_to_ipv6(&socket_ends->peer, peer, &port);
	return memcmp(own, peer, sizeof(own)) == 0;
}

int
gp_peer_query_owner(int fd, uid_t *uid_p)
{
	struct socket_ends socket_ends;

	if (get_ends(fd, &socket_ends))
		return GP_E_UNSUPPORTED;
	if (socket_ends.peer.ss_family == AF_UNIX)
		return unix_peer_uid(fd, uid_p);
	if (socket_ends.peer.ss_family != AF_INET && socket_ends.peer.ss_family != AF_INET6)
		return GP_E_UNSUPPORTED;
	if (!gp_peer_is_loopback(&socket_ends.peer) && !ends_are_same_address(&socket_ends))
		return GP_E_UNSUPPORTED;
	return kernel_query_owner(&socket_ends, uid_p);
}

/* If the kernel does not support the query: searches its list of all sockets, which is long. */
static int
lists_find_owner(const struct socket_ends *socket_ends, uid_t *uid_p)
{
	const struct sockaddr_storage *own = &socket_ends->own, *peer = &socket_ends->peer;
	char local[NAME_SIZE], remote[NAME_SIZE];
	int r = GP_E_UNSUPPORTED;

	if (peer->ss_family == AF_INET ||
	    ((const struct sockaddr_in6 *)peer)->sin6_addr.s6_addr[10]) {
		address_format(peer, false, local);
		address_format(own, false, remote);
		r = list_find_owner("/proc/net/tcp", local, remote, uid_p);
	}
	if (r) {
		address_format(peer, true, local);
		address_format(own, true, remote);
		r = list_find_owner("/proc/net/tcp6", local, remote, uid_p);
	}
	return r;
}

int
gp_peer_query_uid(int fd, uid_t *uid_p)
{
	struct socket_ends socket_ends;

	if (get_ends(fd, &socket_ends))
		return GP_E_UNSUPPORTED;
	if (socket_ends.peer.ss_family == AF_UNIX)
		return unix_peer_uid(fd, uid_p);
	if (!gp_peer_is_loopback(&socket_ends.peer))
		return GP_E_UNSUPPORTED;
	return kernel_query_owner(&socket_ends, uid_p) ? lists_find_owner(&socket_ends, uid_p) : 0;
}
