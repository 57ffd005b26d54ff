/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User ID of the peer of a socket on the same machine; for the socket backends.
 *
 * Threads: any.
 */
#ifndef GP_PEER_H
#define GP_PEER_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Whether the address is a loopback address. */
bool gp_peer_is_loopback(const struct sockaddr_storage *address);

/*
 * Returns the owner of the peer's socket if it is connected through the loopback network, through
 * the address that it connected to, or through a local socket. Costs a few system calls.
 * GP_E_UNSUPPORTED: the peer is on another machine or has closed its socket, or the kernel does not
 * provide the owner.
 */
GP_MUST_CHECK int gp_peer_query_owner(int fd, uid_t *uid_p);

/* The same for loopback and local sockets only, using all methods, some of which take milliseconds.
 * GP_E_UNSUPPORTED if the kernel does not provide the owner. */
GP_MUST_CHECK int gp_peer_query_uid(int fd, uid_t *uid_p);

#endif /* GP_PEER_H */
