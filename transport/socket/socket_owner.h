/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User ID of the owner of the socket at the other end of a connection on the same machine. The two
 * queries differ: gp_peer_query_owner() is for the supervisor's admission, which must not be
 * delayed and has only a descriptor; gp_peer_query_uid() implements gp_conn_peer_uid()
 * (transport.h) in tcp.c, which decides about access.
 *
 * Ownership: descriptors stay the caller's.
 * Threads: any.
 * Errors: *uid_p is written only if 0 is returned.
 */
#ifndef GP_SOCKET_OWNER_H
#define GP_SOCKET_OWNER_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Returns whether the address is a loopback address (127.0.0.0/8, also IPv4-mapped, or ::1), or one
 * of a local socket (AF_UNIX). */
bool gp_peer_is_loopback(const struct sockaddr_storage *address);

/*
 * Stores the owner of the peer's socket in *uid_p, if the peer is on this machine: fd is a local
 * socket, or a TCP socket that is connected through the loopback network or whose two ends have the
 * same address. Never searches a list of sockets; costs a few system calls. Returns 0, or
 * GP_E_UNSUPPORTED: the peer is on another machine or has closed its socket, or the kernel does not
 * provide the owner.
 */
GP_MUST_CHECK int gp_peer_query_owner(int fd, uid_t *uid_p);

/* Like gp_peer_query_owner(), with two differences: a TCP socket must be connected through the
 * loopback network; and if the kernel's query fails, the function searches /proc/net/tcp and tcp6,
 * the lists of all sockets, which takes milliseconds. Returns 0 or GP_E_UNSUPPORTED as
 * gp_peer_query_owner(). */
GP_MUST_CHECK int gp_peer_query_uid(int fd, uid_t *uid_p);

#endif /* GP_SOCKET_OWNER_H */
