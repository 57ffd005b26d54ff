/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket on this machine; for backends over sockets. */
#ifndef GP_PEER_H
#define GP_PEER_H

#include "base/status.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

bool gp_peer_is_loopback(const struct sockaddr_storage *address);

/*
 * The owner of the peer's socket, if it came from the loopback network, from the address it came
 * to, or by a local socket.  Costs a few system calls.  GP_E_UNSUPPORTED: it is another machine's,
 * or closed already, or the kernel does not say.
 */
GP_MUST_CHECK int gp_peer_query_owner(int fd, uid_t *uid_p);

/* The same of the loopback network and local sockets alone, by all means, some of which take
 * milliseconds; GP_E_UNSUPPORTED if the kernel does not say. */
GP_MUST_CHECK int gp_peer_query_uid(int fd, uid_t *uid_p);

#endif /* GP_PEER_H */
