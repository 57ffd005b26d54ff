/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an address that connections come from is called: one of IPv4, the first half of one of IPv6,
 * or a user of this machine, whichever of its addresses or local sockets he comes by.  All of the
 * loopback network whose owner is not known is one.  Any thread of any process.
 */
#ifndef GPD_SOURCE_NAME_H
#define GPD_SOURCE_NAME_H

#include <sys/types.h>

#define GPD_CLIENT_ADDRESS_NAME_MAX 64

/* peer as gp_conn_peer() says it; owner: the user of this machine, NULL: none, or not known. */
void gpd_client_address_name(const char *peer, const uid_t *owner,
			     char name[GPD_CLIENT_ADDRESS_NAME_MAX]);

#endif /* GPD_SOURCE_NAME_H */
