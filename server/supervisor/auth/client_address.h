/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client addresses, and the daemon's resources that each one uses, so that no client can exhaust
 * those of the others.
 *
 * client_address_name.h defines what counts as one address. An entry is kept while a connection
 * uses it, and until its failed logins have expired. If GPD_CLIENT_ADDRESSES_MAX addresses are
 * known, new ones share one entry, except for root and the daemon's own user.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_CLIENT_ADDRESS_H
#define GPD_CLIENT_ADDRESS_H

#include "server/common/base/client_address_name.h"
#include "server/common/ledger/log_budget.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#define GPD_CLIENT_ADDRESSES_MAX 1024
/* Rate limit of failed logins: the first FAILURES are refused at once, plus one more per
 * FAILURE_MS; further refusals are delayed by DELAY_MS. */
#define GPD_CLIENT_ADDRESS_FAILURES 10
#define GPD_CLIENT_ADDRESS_FAILURE_MS 6000
#define GPD_CLIENT_ADDRESS_DELAY_MS 2000
/* Rate limit of connections that are closed before Hello and are not lanes: WASTED per address,
 * plus one more per WASTED_MS. */
#define GPD_CLIENT_ADDRESS_WASTED 512
#define GPD_CLIENT_ADDRESS_WASTED_MS 10

struct gpd_client_address {
	UT_hash_handle hh;
	char name[GPD_CLIENT_ADDRESS_NAME_MAX]; /* as written by gpd_client_address_name() */
	/* Root or the daemon's own user, which other users must not be able to lock out. */
	bool is_privileged;
	unsigned int users; /* number of references */
	/* Its connections that are not authenticated yet; used by the admission. */
	unsigned int handshakes;
	/* Connections of these that wait until others are finished; used by the admission. */
	unsigned int waiting;
	/* When its limit was reached without any connection to close; used by the admission. */
	int64_t no_room_ms;
	uint64_t last_start; /* number of its last start of a worker for a single session, or 0 */
	int64_t failed_until_ms; /* when the count of failed logins is back at zero */
	int64_t wasted_until_ms; /* when the count of wasted connections is back at zero */
};

/* Returns the entry of an address as returned by gp_conn_peer(), or of a local user; owner NULL:
 * remote or unknown. The caller releases it with gpd_client_address_put(). Never NULL. */
struct gpd_client_address *gpd_client_address_get(const char *peer, const uid_t *owner);
void gpd_client_address_put(struct gpd_client_address *client_address);

/* Counts a failed login. Returns the delay in ms before the refusal is to be sent. */
int64_t gpd_client_address_login_failed(struct gpd_client_address *client_address, int64_t now_ms);

/* Counts a connection that was closed before Hello and was not a lane. */
void gpd_client_address_count_wasted(struct gpd_client_address *client_address, int64_t now_ms);
/* Returns whether the address has exceeded this limit; further connections are closed at once.
 * Always false for root, the daemon's user, and the shared entry. */
bool gpd_client_address_is_throttled(const struct gpd_client_address *client_address,
				     int64_t now_ms);

/* Logs a line about the address if its log budget (log_budget.h) allows it. */
#define gpd_client_address_log(client_address, level, ...)                                         \
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, (client_address)->name),     \
			   level, __VA_ARGS__)

/* Periodically: frees unused entries without pending counts. now_ms INT64_MAX: all unused
 * entries. */
void gpd_client_address_expire(int64_t now_ms);

#endif /* GPD_CLIENT_ADDRESS_H */
