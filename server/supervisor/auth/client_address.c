/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/client_address.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gpd_client_address *addrs;
/* Shared by new addresses when the table is full. */
static struct gpd_client_address others = { .name = "other addresses" };

struct gpd_client_address *
gpd_client_address_get(const char *peer, const uid_t *owner)
{
	bool is_privileged = owner && (*owner == 0 || *owner == geteuid());
	char name[GPD_CLIENT_ADDRESS_NAME_MAX];
	struct gpd_client_address *client_address;

	gpd_client_address_name(peer, owner, name);
	HASH_FIND_STR(addrs, name, client_address);
	if (!client_address && (is_privileged || HASH_COUNT(addrs) < GPD_CLIENT_ADDRESSES_MAX)) {
		client_address = calloc(1, sizeof(*client_address));
		if (client_address) {
			memcpy(client_address->name, name, sizeof(name));
			client_address->is_privileged = is_privileged;
			HASH_ADD_STR(addrs, name, client_address);
		}
	}
	if (!client_address)
		client_address = &others;
	client_address->users++;
	return client_address;
}

void
gpd_client_address_put(struct gpd_client_address *client_address)
{
	client_address->users--;
}

int64_t
gpd_client_address_login_failed(struct gpd_client_address *client_address, int64_t now_ms)
{
	int64_t start =
		client_address->failed_until_ms > now_ms ? client_address->failed_until_ms : now_ms;

	if (start + GPD_CLIENT_ADDRESS_FAILURE_MS >
	    now_ms + GPD_CLIENT_ADDRESS_FAILURES * GPD_CLIENT_ADDRESS_FAILURE_MS)
		return GPD_CLIENT_ADDRESS_DELAY_MS;
	client_address->failed_until_ms = start + GPD_CLIENT_ADDRESS_FAILURE_MS;
	return 0;
}

void
gpd_client_address_count_wasted(struct gpd_client_address *client_address, int64_t now_ms)
{
	int64_t start =
		client_address->wasted_until_ms > now_ms ? client_address->wasted_until_ms : now_ms;

	if (!gpd_client_address_is_throttled(client_address, now_ms))
		client_address->wasted_until_ms = start + GPD_CLIENT_ADDRESS_WASTED_MS;
}

bool
gpd_client_address_is_throttled(const struct gpd_client_address *client_address, int64_t now_ms)
{
	return !client_address->is_privileged && client_address != &others &&
	       client_address->wasted_until_ms >=
		       now_ms + GPD_CLIENT_ADDRESS_WASTED * GPD_CLIENT_ADDRESS_WASTED_MS;
}

void
gpd_client_address_expire(int64_t now_ms)
{
	struct gpd_client_address *client_address, *next;

	HASH_ITER(hh, addrs, client_address, next)
	{
		if (client_address->users || client_address->failed_until_ms > now_ms ||
		    client_address->wasted_until_ms > now_ms)
			continue;
		HASH_DEL(addrs, client_address);
		free(client_address);
	}
}
