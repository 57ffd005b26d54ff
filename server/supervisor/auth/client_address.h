/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client addresses with the daemon's resources that each one uses, so that the clients of one
 * address cannot use up the resources of all others.
 *
 * client_address_name.h defines what counts as one address. An entry exists while a connection or a
 * worker uses it, and until its counts of failed logins and wasted connections are back at zero. If
 * GPD_CLIENT_ADDRESSES_MAX addresses are known, further ones share one entry, except for local
 * connections of root and the daemon's own user.
 *
 * Ownership: entries are reference counted and belong to a table in client_address.c;
 * gpd_client_address_expire() frees them.
 * Threads: the supervisor's main thread.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_CLIENT_ADDRESS_H
#define GPD_CLIENT_ADDRESS_H

#include "server/common/base/client_address_name.h"
#include "server/common/ledger/log_budget.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

/* Maximum number of entries, except for root and the daemon's user. */
#define GPD_CLIENT_ADDRESSES_MAX 1024
/* Rate limit of failed logins per address: the first FAILURES are refused at once, plus one more
 * per FAILURE_MS; further refusals are delayed by DELAY_MS. */
#define GPD_CLIENT_ADDRESS_FAILURES 10
#define GPD_CLIENT_ADDRESS_FAILURE_MS 6000
#define GPD_CLIENT_ADDRESS_DELAY_MS 2000
/* Rate limit of wasted connections: WASTED per address, plus one more per WASTED_MS. A connection
 * is wasted if it ends before Hello, or is a lane without a session. */
#define GPD_CLIENT_ADDRESS_WASTED 512
#define GPD_CLIENT_ADDRESS_WASTED_MS 10

/* An entry. */
struct gpd_client_address {
	UT_hash_handle hh;
	char name[GPD_CLIENT_ADDRESS_NAME_MAX]; /* as written by gpd_client_address_name() */
	/* Root or the daemon's own user, which other users must not be able to lock out. */
	bool is_privileged;
	unsigned int users; /* number of references */
	/* Number of its connections in HANDSHAKE or REFUSED (connection.h); maintained by the
	 * admission. */
	unsigned int handshakes;
	/* Number of its connections that wait for a receiver thread; maintained by the
	 * admission. */
	unsigned int waiting;
	/* Time of the last search for a connection to close because its limit of handshakes was
	 * reached, if none was found; 0: one was found. Maintained by the admission. */
	int64_t no_room_ms;
	/* Number of its last start of a dedicated worker (value of gpd_admission.starts,
	 * admission.h); 0: none. Maintained by the admission. */
	uint64_t last_start;
	int64_t failed_until_ms; /* time at which the count of failed logins is back at zero */
	int64_t wasted_until_ms; /* time at which the count of wasted connections is back at zero */
};

/* Returns a reference to the entry of an address. peer: as returned by gp_conn_peer(); owner: the
 * local user of the connection, NULL if remote or unknown. Returns the shared entry if out of
 * memory or there are too many, never NULL. The caller releases it with
 * gpd_client_address_put(). */
struct gpd_client_address *gpd_client_address_get(const char *peer, const uid_t *owner);
/* Releases a reference. The entry stays until gpd_client_address_expire(). */
void gpd_client_address_put(struct gpd_client_address *client_address);

/* Counts a failed login. Returns the delay in milliseconds before the refusal is to be sent; 0: at
 * once. */
int64_t gpd_client_address_login_failed(struct gpd_client_address *client_address, int64_t now_ms);

/* Counts a wasted connection, up to the limit. */
void gpd_client_address_count_wasted(struct gpd_client_address *client_address, int64_t now_ms);
/* Returns whether the address has exceeded the limit of wasted connections; the caller then closes
 * further connections at once. Always false for root, the daemon's user, and the shared entry. */
bool gpd_client_address_is_throttled(const struct gpd_client_address *client_address,
				     int64_t now_ms);

/* Logs a line about the address if its log budget (log_budget.h) allows it. */
#define gpd_client_address_log(client_address, level, ...)                                         \
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, (client_address)->name),     \
			   level, __VA_ARGS__)

/* Frees entries without references whose counts are back at zero. Called periodically. now_ms
 * INT64_MAX: frees all entries without references. */
void gpd_client_address_expire(int64_t now_ms);

#endif /* GPD_CLIENT_ADDRESS_H */
