/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions have records of their own, and that the sums lose nothing. */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/admin/usage.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MORE 50

static struct gpd_usage usage;
static struct gpd_admission admission;
static struct gpd_quota quota;
static char path[] = "/tmp/gpupool-usage-XXXXXX";

static int
set_up(void **state)
{
	char error[GPD_CONFIG_ERROR_MAX];
	int fd;

	gpd_log_level = GPD_LOG_ERROR;
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	if (fd < 0 || close(fd) || gpd_quota_init(&quota, NULL, error) ||
	    gpd_admission_init(&admission, &quota, 10, 0))
		return -1;
	gpd_ledger_add_tenant(quota.ledger, 1, "other");
	gpd_usage_init(&usage, &admission);
	return gpd_usage_set_path(&usage, path, error, sizeof(error));
}

static int
tear_down(void **state)
{
	gpd_usage_close(&usage);
	gpd_admission_fini(&admission);
	gpd_quota_fini(&quota);
	return unlink(path);
}

/* Of two devices; its launches say whether it has used anything. */
static void
run_session(uint32_t tenant, uint64_t launches, int64_t seconds)
{
	static uint64_t id = 1000;
	struct gpd_ledger_session *session = gpd_ledger_open(quota.ledger, ++id, tenant, 1);
	struct gpd_session_owner *client =
		&admission.session_owners.clients[gpd_ledger_index(quota.ledger, session)];

	*client = (struct gpd_session_owner){
		.session = id,
		.started_s = (int64_t)time(NULL) - seconds,
		.devices = 3,
		.program = "program",
	};
	atomic_store(&session->counts.launches, launches);
	atomic_store(&session->devices[1].gpu_ns, launches);
	gpd_usage_ended(&usage, session);
	gpd_ledger_close(quota.ledger, session);
}

struct found {
	unsigned long long ended, unused, summed; /* records */
	unsigned long long sessions;              /* in sums */
	unsigned long long launches, gpu_ns;      /* of all */
	long long seconds;                        /* of those that were summed */
};

static struct found
read_records(const char *tenant)
{
	FILE *file;
	char line[2048];
	struct found found = { 0 };

	gpd_usage_check(&usage, gp_now_ms());
	usage.next_ms = gp_now_ms();
	gpd_usage_check(&usage, gp_now_ms());
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char event[20], daemon[20], name[70];
		unsigned long long session, gpu_s, gpu_ns, peak, launches;
		long long now, started;
		int gpu;

		if (sscanf(line,
			   "%lld,%19[^,],%19[^,],%llu,\"%69[^\"]\",%lld,%d,%llu.%llu,%llu,%llu",
			   &now, event, daemon, &session, name, &started, &gpu, &gpu_s, &gpu_ns,
			   &peak, &launches) != 11 ||
		    strcmp(name, tenant) != 0)
			continue;
		found.ended += strcmp(event, "ended") == 0;
		found.unused += strcmp(event, "unused") == 0;
		found.summed += strcmp(event, "summed") == 0;
		if (strcmp(event, "ended") != 0)
			found.sessions += session;
		if (strcmp(event, "summed") == 0 && session)
			found.seconds += now - started;
		found.launches += launches;
		found.gpu_ns += gpu_ns;
	}
	(void)fclose(file);
	return found;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(short_sessions_beyond_the_budget_are_summed_up)
{
	const unsigned long long listed = GPD_USAGE_RECORDS / 2, all = listed + MORE;
	struct found found;

	for (unsigned long long i = 0; i < all; i++)
		run_session(0, 1, 10);
	/* Another tenant has a budget of its own. */
	run_session(1, 1, 0);
	found = read_records("default");
	/* The budget goes on growing meanwhile. */
	assert_true(found.ended >= 2 * listed);
	assert_true(found.ended < 2 * all);
	assert_int_equal(found.summed, 2);
	assert_int_equal(found.ended / 2 + found.sessions, all);
	assert_int_equal(found.launches, all);
	assert_int_equal(found.gpu_ns, all);
	assert_true(found.seconds >= 10 * (long long)found.sessions);
	assert_int_equal(read_records("other").ended, 2);
	assert_int_equal(read_records("other").summed, 0);
}

TEST(long_sessions_are_always_listed)
{
	for (int i = 0; i < GPD_USAGE_RECORDS / 2 + MORE; i++)
		run_session(0, 1, 301);
	assert_int_equal(read_records("default").ended, GPD_USAGE_RECORDS + 2 * MORE);
	assert_int_equal(read_records("default").summed, 0);
}

TEST(sessions_that_have_used_nothing_are_counted)
{
	struct found found;

	for (int i = 0; i < MORE; i++)
		run_session(0, 0, 10);
	found = read_records("default");
	assert_int_equal(found.ended, 0);
	assert_int_equal(found.unused, 1);
	assert_int_equal(found.sessions, MORE);
	/* They are counted once. */
	assert_int_equal(read_records("default").sessions, MORE);
}

UNIT_TEST_MAIN(NULL, NULL)
