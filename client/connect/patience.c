/* SPDX-License-Identifier: Apache-2.0 */
/* A place at a daemon that is full, or is being started anew, waited for. */
#include "base/clock.h"
#include "client/base/config.h"
#include "client/base/log.h"
#include "client/connect/connect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
/* From one question to the next; it doubles. */
#define PAUSE_NS (SECOND_NS / 2)
#define PAUSE_MAX_NS (8 * SECOND_NS)
/* A daemon that has kept the question for so long in vain is asked again at once. */
#define HELD_NS (4 * SECOND_NS)
#define PAUSE_HELD_NS (SECOND_NS / 10)
/* So often it says that it still waits. */
#define SAY_NS (60 * SECOND_NS)
/* A daemon that is being started anew listens again within this time. */
#define RESTART_NS (30 * SECOND_NS)

struct patience {
	uint64_t begin_ns, deadline_ns, said_ns;
	unsigned int seconds;       /* 0: it does not wait */
	struct gpc_waiting waiting; /* at the daemon */
	bool known;                 /* the daemon has answered before */
	char said[640];
};

/* At first, when there is another reason, and once a minute. */
static void
say(struct patience *patience, const char *why, uint64_t now_ns)
{
	time_t end = time(NULL) + (time_t)((patience->deadline_ns - now_ns) / SECOND_NS);
	char until[32] = "";
	struct tm when;

	if (strcmp(patience->said, why) == 0 && now_ns - patience->said_ns < SAY_NS)
		return;
	if (localtime_r(&end, &when))
		(void)strftime(until, sizeof(until), "%H:%M:%S", &when);
	gpc_warn("%s; waiting for a place for %llu s, until %s at most (GPUPOOL_WAIT)", why,
		 (unsigned long long)((now_ns - patience->begin_ns) / SECOND_NS), until);
	(void)snprintf(patience->said, sizeof(patience->said), "%s", why);
	patience->said_ns = now_ns;
}

/* Any, but not another's, and not 0. */
static uint64_t
choose_number(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = gp_now_ns();
	return number | 1;
}

/* Whether it helps to ask again.  Nobody listens while a daemon is started anew, and one that stops
 * closes the connection; of one that has never answered the address may be wrong. */
static bool
may_come(struct patience *patience, int r, uint64_t now_ns)
{
	if (patience->seconds == 0 || now_ns >= patience->deadline_ns)
		return false;
	switch (r) {
	case -EBUSY:
		patience->known = true;
		return true;
	case -ECONNREFUSED:
		return patience->known || now_ns - patience->begin_ns < RESTART_NS;
	case -EPIPE:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case GP_E_EOF:
	case GP_E_TIMEOUT:
	case GP_E_FOREIGN:
		return patience->known;
	default:
		return false;
	}
}

/* Not less than it is: whom the daemon has kept for so long asks no more. */
static uint32_t
left_ms(const struct patience *patience, uint64_t now_ns)
{
	return now_ns < patience->deadline_ns
		       ? (uint32_t)((patience->deadline_ns - now_ns) / (SECOND_NS / 1000)) + 1
		       : 0;
}

int
gpc_link_open_patiently(const struct gp_url *url, const int32_t *devices, int device_count,
			struct gpc_link *link, char *error, size_t error_size)
{
	struct patience patience = { .begin_ns = gp_now_ns() };
	uint64_t now_ns, pause_ns = PAUSE_NS;
	int r = gpc_config_wait(&patience.seconds, error, error_size);

	if (r != 0)
		return r;
	if (patience.seconds)
		patience.waiting.number = choose_number();
	patience.deadline_ns = patience.begin_ns + patience.seconds * SECOND_NS;
	for (;;) {
		uint64_t left_ns, asked_ns = gp_now_ns(), nap_ns = pause_ns;

		patience.waiting.patience_ms = left_ms(&patience, asked_ns);
		r = gpc_link_open(url, devices, device_count,
				  patience.seconds ? &patience.waiting : NULL, link, error,
				  error_size);
		now_ns = gp_now_ns();
		if (r == 0 || !may_come(&patience, r, now_ns))
			break;
		say(&patience, error, now_ns);
		left_ns = patience.deadline_ns - now_ns;
		if (now_ns - asked_ns >= HELD_NS)
			nap_ns = PAUSE_HELD_NS;
		else
			pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
		gp_nap(nap_ns < left_ns ? nap_ns : left_ns);
	}
	if (r != 0 && patience.said_ns)
		(void)snprintf(error + strlen(error), error_size - strlen(error),
			       " (waited for %llu s: GPUPOOL_WAIT)",
			       (unsigned long long)((now_ns - patience.begin_ns) / SECOND_NS));
	if (r == 0 && patience.said_ns)
		gpc_warn("there is a place, after %llu s",
			 (unsigned long long)((now_ns - patience.begin_ns) / SECOND_NS));
	return r;
}
