/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that connections come from, and what each of them has had of the daemon: so that one
 * cannot use up what is there for all.
 *
 * What an address is source_name.h says.  One is remembered as long as a connection uses it, and
 * until all failed logins are given back; beyond GPD_CLIENT_ADDRESSES_MAX addresses those that are
 * new share one place, root and the daemon's own user excepted.  Main thread only.
 */
#ifndef GPD_SOURCE_H
#define GPD_SOURCE_H

#include "server/common/base/source_name.h"
#include "server/common/ledger/log_budget.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#define GPD_CLIENT_ADDRESSES_MAX 1024
/* Failed logins: so many are answered at once, and one more for each of these times; the others
 * later. */
#define GPD_CLIENT_ADDRESS_FAILURES 10
#define GPD_CLIENT_ADDRESS_FAILURE_MS 6000
#define GPD_CLIENT_ADDRESS_DELAY_MS 2000
/* Connections that end without Hello and are no lane: an address may have this number of them, and
 * one more in each of these times. */
#define GPD_CLIENT_ADDRESS_WASTED 512
#define GPD_CLIENT_ADDRESS_WASTED_MS 10

struct gpd_client_address {
	UT_hash_handle hh;
	char name[GPD_CLIENT_ADDRESS_NAME_MAX]; /* what it is called, as gpd_client_address_name()
						   has it */
	bool is_privileged; /* root or the daemon's own user, whom no other user may lock out */
	unsigned int users; /* who has got it and not given it back */
	unsigned int handshakes; /* its connections that have not been let in; the admission's */
	unsigned int waiting;    /* those that wait until others are done; the admission's */
	int64_t no_room_ms;  /* when it had all its places and none made room; the admission's */
	uint64_t last_start; /* the number of its last worker among those for single sessions, or 0
			      */
	int64_t failed_until_ms; /* then every failed login is given back */
	int64_t wasted_until_ms; /* then every connection that came to nothing is given back */
};

/* Of this address, as gp_conn_peer() says it, or of the user of this machine, NULL if there is none
 * or he is not known.  To be given back; never NULL. */
struct gpd_client_address *gpd_client_address_get(const char *peer, const uid_t *owner);
void gpd_client_address_put(struct gpd_client_address *client_address);

/* A login has failed: after how many milliseconds it is to be answered. */
int64_t gpd_client_address_login_failed(struct gpd_client_address *client_address, int64_t now_ms);

/* A connection has ended without Hello, and was no lane. */
void gpd_client_address_count_wasted(struct gpd_client_address *client_address, int64_t now_ms);
/* Whether the address has had too many of these: further connections are closed before they cost
 * anything. Never of root, of the daemon's user, and of addresses that share one place. */
bool gpd_client_address_is_throttled(const struct gpd_client_address *client_address,
				     int64_t now_ms);

/* A line of the log that the address has caused, if its budget (log_budget.h) has one left. */
#define gpd_client_address_log(client_address, level, ...)                                         \
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, (client_address)->name),     \
			   level, __VA_ARGS__)

/* Once in a while: forgets addresses of which nothing is known; INT64_MAX: all that nobody has. */
void gpd_client_address_expire(int64_t now_ms);

#endif /* GPD_SOURCE_H */
