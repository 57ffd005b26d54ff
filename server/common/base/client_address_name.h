/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for client addresses, by which limits and the log group connections: an IPv4 address, the
 * /64 prefix of an IPv6 address, or "local user N" for a local user, independent of the loopback
 * address or local socket that the user connects from. Loopback connections of unknown owner share
 * the name "loopback".
 *
 * Threads: any, of any process.
 */
#ifndef GPD_CLIENT_ADDRESS_NAME_H
#define GPD_CLIENT_ADDRESS_NAME_H

#include <sys/types.h>

/* Size of a name's buffer in bytes, including the terminating zero. */
#define GPD_CLIENT_ADDRESS_NAME_MAX 64

/* Writes the name of a client. peer: as returned by gp_conn_peer() (transport/transport.h). owner:
 * the local user of the connection; NULL if the client is remote or its user is not known. */
void gpd_client_address_name(const char *peer, const uid_t *owner,
			     char name[GPD_CLIENT_ADDRESS_NAME_MAX]);

#endif /* GPD_CLIENT_ADDRESS_NAME_H */
