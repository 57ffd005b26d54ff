/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/source.h"

#include "server/common/base/bucket.h"
#include "server/common/base/clock.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

/* When what was left out is told of, and addresses are forgotten of which nothing is known. */
#define CHECK_MS 30000
#define LOOPBACK "loopback addresses"

struct gpd_caller {
	UT_hash_handle hh;
	char name[GPD_CALLER_NAME_MAX];
	bool own;
	unsigned int users;
	unsigned int handshakes, waiting;
	uint64_t last_start;
	struct gpd_bucket lines, failures;
	unsigned int left_out;
	int64_t check_ms; /* INT64_MAX: somebody holds it and nothing is left out */
};

static struct gpd_caller *callers;
/* When there are too many. */
static struct gpd_caller others = { .name = "other addresses", .check_ms = INT64_MAX };

static bool
is_loopback(const char *text)
{
	struct in_addr address;

	return inet_pton(AF_INET, text, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The text between the brackets. */
static void
name_ipv6(const char *host, char name[GPD_CALLER_NAME_MAX])
{
	char text[GPD_CALLER_NAME_MAX];
	struct in6_addr address;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, "]%"), host);
	(void)snprintf(name, GPD_CALLER_NAME_MAX, "%s", text);
	if (inet_pton(AF_INET6, text, &address) != 1)
		return;
	if (IN6_IS_ADDR_LOOPBACK(&address)) {
		(void)snprintf(name, GPD_CALLER_NAME_MAX, "%s", LOOPBACK);
		return;
	}
	if (IN6_IS_ADDR_V4MAPPED(&address)) {
		(void)inet_ntop(AF_INET, &address.s6_addr[12], name, GPD_CALLER_NAME_MAX);
		return;
	}
	/* Who has one address of a network has as many as he likes. */
	memset(&address.s6_addr[8], 0, 8);
	(void)inet_ntop(AF_INET6, &address, text, sizeof(text));
	(void)snprintf(name, GPD_CALLER_NAME_MAX, "%.58s/64", text);
}

void
gpd_caller_name(const char *peer, const uid_t *owner, char name[GPD_CALLER_NAME_MAX])
{
	const char *host = strstr(peer, "://");
	size_t length;

	if (owner) {
		(void)snprintf(name, GPD_CALLER_NAME_MAX, "user %u of this machine", *owner);
		return;
	}
	host = host ? host + 3 : peer;
	if (*host == '[') {
		name_ipv6(host + 1, name);
	} else {
		/* A path has no port. */
		length = *host == '/' ? strlen(host) : strcspn(host, ":");
		(void)snprintf(name, GPD_CALLER_NAME_MAX, "%.*s", (int)length, host);
	}
	/* Each user of this machine has them all. */
	if (is_loopback(name))
		(void)snprintf(name, GPD_CALLER_NAME_MAX, "%s", LOOPBACK);
}

struct gpd_caller *
gpd_caller_get(const char *peer, const uid_t *owner, int64_t now_ms)
{
	bool own = owner && (*owner == 0 || *owner == geteuid());
	char name[GPD_CALLER_NAME_MAX];
	struct gpd_caller *caller;

	gpd_caller_name(peer, owner, name);
	HASH_FIND_STR(callers, name, caller);
	if (!caller && (own || HASH_COUNT(callers) < GPD_CALLERS_MAX)) {
		caller = calloc(1, sizeof(*caller));
		if (caller) {
			memcpy(caller->name, name, sizeof(name));
			caller->own = own;
			caller->check_ms = INT64_MAX;
			HASH_ADD_STR(callers, name, caller);
		}
	}
	if (!caller)
		caller = &others;
	caller->users++;
	return caller;
}

const char *
gpd_caller_own_name(const struct gpd_caller *caller)
{
	return caller->name;
}

bool
gpd_caller_is_own(const struct gpd_caller *caller)
{
	return caller->own;
}

void
gpd_caller_put(struct gpd_caller *caller, int64_t now_ms)
{
	caller->users--;
	if (caller->check_ms == INT64_MAX)
		caller->check_ms = now_ms + CHECK_MS;
}

struct gpd_caller *
gpd_caller_hold(struct gpd_caller *caller)
{
	caller->users++;
	return caller;
}

uint64_t
gpd_caller_last_start(const struct gpd_caller *caller)
{
	return caller->last_start;
}

void
gpd_caller_set_last_start(struct gpd_caller *caller, uint64_t number)
{
	caller->last_start = number;
}

unsigned int
gpd_caller_handshakes(const struct gpd_caller *caller)
{
	return caller->handshakes;
}

void
gpd_caller_count_handshake(struct gpd_caller *caller, int more)
{
	caller->handshakes += (unsigned int)more;
}

unsigned int
gpd_caller_waiting(const struct gpd_caller *caller)
{
	return caller->waiting;
}

void
gpd_caller_count_waiting(struct gpd_caller *caller, int more)
{
	caller->waiting += (unsigned int)more;
}

int64_t
gpd_caller_failed(struct gpd_caller *caller, int64_t now_ms)
{
	return gpd_bucket_use(&caller->failures, GPD_CALLER_FAILURES, GPD_CALLER_FAILURE_MS, now_ms)
		       ? 0
		       : GPD_CALLER_DELAY_MS;
}

static void
tell_left_out(struct gpd_caller *caller)
{
	if (caller->left_out)
		gpd_warning("%s: %u more lines about it are left out", caller->name,
			    caller->left_out);
	caller->left_out = 0;
}

void
gpd_caller_log(struct gpd_caller *caller, enum gpd_log_level level, const char *format, ...)
{
	int64_t now_ms = gpd_now_ms();
	char text[900];
	va_list args;

	if (level > gpd_log_level)
		return;
	if (!gpd_bucket_use(&caller->lines, GPD_CALLER_LINES, GPD_CALLER_LINE_MS, now_ms)) {
		caller->left_out++;
		if (caller->check_ms == INT64_MAX)
			caller->check_ms = now_ms + CHECK_MS;
		return;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log(level, "%s", text);
}

int64_t
gpd_caller_deadline(void)
{
	int64_t deadline = others.check_ms;

	for (const struct gpd_caller *c = callers; c; c = c->hh.next) {
		if (c->check_ms < deadline)
			deadline = c->check_ms;
	}
	return deadline;
}

/* Whether it may be forgotten. */
static bool
check(struct gpd_caller *caller, int64_t now_ms)
{
	if (caller->check_ms > now_ms)
		return false;
	tell_left_out(caller);
	gpd_bucket_give_back(&caller->lines, GPD_CALLER_LINE_MS, now_ms);
	gpd_bucket_give_back(&caller->failures, GPD_CALLER_FAILURE_MS, now_ms);
	caller->check_ms = caller->users ? INT64_MAX : now_ms + CHECK_MS;
	if (caller == &others && !caller->lines.used && !caller->failures.used)
		caller->check_ms = INT64_MAX;
	return !caller->users && !caller->lines.used && !caller->failures.used;
}

void
gpd_caller_check(int64_t now_ms)
{
	struct gpd_caller *caller, *next;

	(void)check(&others, now_ms);
	HASH_ITER(hh, callers, caller, next)
	{
		if (!check(caller, now_ms))
			continue;
		HASH_DEL(callers, caller);
		free(caller);
	}
}

void
gpd_caller_forget_all(void)
{
	struct gpd_caller *caller, *next;

	tell_left_out(&others);
	HASH_ITER(hh, callers, caller, next)
	{
		tell_left_out(caller);
		HASH_DEL(callers, caller);
		free(caller);
	}
	others = (struct gpd_caller){ .name = "other addresses", .check_ms = INT64_MAX };
}
