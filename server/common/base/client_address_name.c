/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/client_address_name.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LOOPBACK "loopback"

static bool
is_loopback(const char *text)
{
	struct in_addr address;

	return inet_pton(AF_INET, text, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* host: the text after the opening bracket. */
static void
format_ipv6(const char *host, char name[GPD_CLIENT_ADDRESS_NAME_MAX])
{
	char text[GPD_CLIENT_ADDRESS_NAME_MAX];
	struct in6_addr address;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, "]%"), host);
	(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "%s", text);
	if (inet_pton(AF_INET6, text, &address) != 1)
		return;
	if (IN6_IS_ADDR_LOOPBACK(&address)) {
		(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "%s", LOOPBACK);
		return;
	}
	if (IN6_IS_ADDR_V4MAPPED(&address)) {
		(void)inet_ntop(AF_INET, &address.s6_addr[12], name, GPD_CLIENT_ADDRESS_NAME_MAX);
		return;
	}
	/* A host with one address of a /64 can use all of them. */
	memset(&address.s6_addr[8], 0, 8);
	(void)inet_ntop(AF_INET6, &address, text, sizeof(text));
	(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "%.58s/64", text);
}

void
gpd_client_address_name(const char *peer, const uid_t *owner,
			char name[GPD_CLIENT_ADDRESS_NAME_MAX])
{
	const char *host = strstr(peer, "://");
	size_t length;

	if (owner) {
		(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "local user %u", *owner);
		return;
	}
	host = host ? host + 3 : peer;
	if (*host == '[') {
		format_ipv6(host + 1, name);
	} else {
		/* The path of a local socket has no port. */
		length = *host == '/' ? strlen(host) : strcspn(host, ":");
		(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "%.*s", (int)length, host);
	}
	/* Every local user can use every loopback address. */
	if (is_loopback(name))
		(void)snprintf(name, GPD_CLIENT_ADDRESS_NAME_MAX, "%s", LOOPBACK);
}
