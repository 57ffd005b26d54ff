/* SPDX-License-Identifier: Apache-2.0 */
/* Retry policy for a daemon that has no session slot or is restarting. */
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
/* Initial pause between two attempts; it doubles. */
#define PAUSE_NS (SECOND_NS / 2)
#define PAUSE_MAX_NS (8 * SECOND_NS)
/* If the daemon delayed its reply by this time because the client was queued, the next attempt
 * follows after a short pause. */
#define QUEUED_NS (4 * SECOND_NS)
#define PAUSE_QUEUED_NS (SECOND_NS / 10)
/* Interval of reports that the client is still waiting. */
#define REPORT_NS (60 * SECOND_NS)
/* A restarting daemon listens again within this time. */
#define RESTART_NS (30 * SECOND_NS)

struct retry {
	uint64_t start_ns, deadline_ns, last_report_ns;
	unsigned int seconds;              /* 0: no retries */
	struct gpc_admission_wait waiting; /* sent to the daemon */
	bool known;                        /* the daemon has replied before */
	char last_report[640];
};

/* Reports the first wait, each change of the reason, and otherwise once a minute. */
static void
retry_report(struct retry *retry, const char *why, uint64_t now_ns)
{
	time_t end = time(NULL) + (time_t)((retry->deadline_ns - now_ns) / SECOND_NS);
	char until[32] = "";
	struct tm when;

	if (strcmp(retry->last_report, why) == 0 && now_ns - retry->last_report_ns < REPORT_NS)
		return;
	if (localtime_r(&end, &when))
		(void)strftime(until, sizeof(until), "%H:%M:%S", &when);
	gpc_log_warn("%s; waiting for a session slot for %llu s, until %s at most (GPUPOOL_WAIT)",
		     why, (unsigned long long)((now_ns - retry->start_ns) / SECOND_NS), until);
	(void)snprintf(retry->last_report, sizeof(retry->last_report), "%s", why);
	retry->last_report_ns = now_ns;
}

/* A random number, unique among the daemon's clients, and not 0. */
static uint64_t
client_number_create(void)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = gp_now_ns();
	return number | 1;
}

/* Returns whether a retry may succeed. A restarting daemon refuses connections, and a stopping one
 * closes them; if the daemon has never replied, the address may be wrong. */
static bool
retry_is_useful(struct retry *retry, int r, uint64_t now_ns)
{
	if (retry->seconds == 0 || now_ns >= retry->deadline_ns)
		return false;
	switch (r) {
	case -EBUSY:
		retry->known = true;
		return true;
	case -ECONNREFUSED:
		return retry->known || now_ns - retry->start_ns < RESTART_NS;
	case -EPIPE:
	case -ECONNRESET:
	case -ETIMEDOUT:
	case GP_E_EOF:
	case GP_E_TIMEOUT:
	case GP_E_FOREIGN:
		return retry->known;
	default:
		return false;
	}
}

/* Rounds up: if the daemon has delayed its reply for this time, the deadline has passed. */
static uint32_t
retry_get_left_ms(const struct retry *retry, uint64_t now_ns)
{
	return now_ns < retry->deadline_ns
		       ? (uint32_t)((retry->deadline_ns - now_ns) / (SECOND_NS / 1000)) + 1
		       : 0;
}

int
gpc_link_open_retrying(const struct gp_url *url, const int32_t *devices, int device_count,
		       struct gpc_link *link, char *error, size_t error_size)
{
	struct retry retry = { .start_ns = gp_now_ns() };
	uint64_t now_ns, pause_ns = PAUSE_NS;
	int r = gpc_config_get_wait(&retry.seconds, error, error_size);

	if (r != 0)
		return r;
	if (retry.seconds)
		retry.waiting.number = client_number_create();
	retry.deadline_ns = retry.start_ns + retry.seconds * SECOND_NS;
	for (;;) {
		uint64_t left_ns, request_ns = gp_now_ns(), nap_ns = pause_ns;

		retry.waiting.max_wait_ms = retry_get_left_ms(&retry, request_ns);
		r = gpc_link_open(url, devices, device_count, retry.seconds ? &retry.waiting : NULL,
				  link, error, error_size);
		now_ns = gp_now_ns();
		if (r == 0 || !retry_is_useful(&retry, r, now_ns))
			break;
		retry_report(&retry, error, now_ns);
		left_ns = retry.deadline_ns - now_ns;
		if (now_ns - request_ns >= QUEUED_NS)
			nap_ns = PAUSE_QUEUED_NS;
		else
			pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
		gp_sleep_ns(nap_ns < left_ns ? nap_ns : left_ns);
	}
	if (r != 0 && retry.last_report_ns)
		(void)snprintf(error + strlen(error), error_size - strlen(error),
			       " (waited for %llu s: GPUPOOL_WAIT)",
			       (unsigned long long)((now_ns - retry.start_ns) / SECOND_NS));
	if (r == 0 && retry.last_report_ns)
		gpc_log_warn("session slot available after %llu s",
			     (unsigned long long)((now_ns - retry.start_ns) / SECOND_NS));
	return r;
}
