/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the admin socket: the state that each changes, and the state that it leaves alone. */
#include "server/common/base/log.h"
#include "server/supervisor/admin/manage.h"
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)

static struct gpd_manager manager;
static struct gpd_admission admission;
static struct gpd_quota quota;
static struct gpd_ledger *ledger;
static int retired;

static bool
retire(void *arg, pid_t worker)
{
	retired = (int)worker;
	return worker == 100;
}

static void
reload(void *arg, struct gpd_reload_report *reloaded)
{
	snprintf(reloaded->error, sizeof(reloaded->error), "file:3: no");
}

static int
enable_device(void *arg, uint32_t device, char *error, size_t size)
{
	(void)arg;
	if (device == 1)
		return 0;
	snprintf(error, size, "device %u is not sick", device);
	return GP_E_INVALID;
}

static const struct gpd_manager_callbacks hooks = { retire, enable_device, reload };

static int
set_up(void **state)
{
	char error[GPD_CONFIG_ERROR_MAX];

	gpd_log_level = GPD_LOG_ERROR;
	retired = 0;
	if (gpd_quota_init(&quota, NULL, error) || gpd_admission_init(&admission, &quota, 10, 0))
		return -1;
	gpd_manager_init(&manager, &admission, &hooks, NULL);
	ledger = quota.ledger;
	quota.tenants.device_count = 2;
	for (int d = 0; d < 2; d++) {
		quota.tenants.devices[d].memory = 80 * GIB;
		quota.tenants.devices[d].multiprocessors = 132;
	}
	return 0;
}

static int
tear_down(void **state)
{
	gpd_manager_fini(&manager);
	gpd_admission_fini(&admission);
	gpd_quota_fini(&quota);
	return 0;
}

static const struct gpd_admin_peer root = { .pid = 1 };

/* The reply's error, or "later"; good until the next call. */
static const char *
ask(const Gpupool__AdminRequest *request, bool again)
{
	static char text[GPD_CONFIG_ERROR_MAX];
	Gpupool__AdminReply *reply;
	uint8_t *bytes;
	size_t size;

	if (gpd_manager_handle(&manager, &root, request, again, &bytes, &size) == GP_E_TIMEOUT)
		return "later";
	assert_non_null(bytes);
	reply = gp_admin_decode_reply(bytes + GP_ADMIN_HEADER_SIZE, size - GP_ADMIN_HEADER_SIZE);
	assert_non_null(reply);
	snprintf(text, sizeof(text), "%s", reply->error);
	gp_admin_free_reply(reply);
	free(bytes);
	return text;
}

/* session 0: the tenant. */
static const char *
set_two(uint64_t session, const char *tenant, int device, const Gpupool__AdminSetting *first,
	const Gpupool__AdminSetting *second)
{
	Gpupool__AdminSetting *list[2] = { (Gpupool__AdminSetting *)first,
					   (Gpupool__AdminSetting *)second };
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;

	set.session = session;
	set.tenant = (char *)tenant;
	set.device = device;
	set.settings = list;
	set.n_settings = second ? 2 : 1;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_SET;
	request.set = &set;
	return ask(&request, false);
}

static Gpupool__AdminSetting
setting(Gpupool__AdminSetting__Key key, uint64_t number, uint32_t share)
{
	Gpupool__AdminSetting s = GPUPOOL__ADMIN_SETTING__INIT;

	s.key = key;
	s.number = number;
	s.share = share;
	return s;
}

#define MEMORY GPUPOOL__ADMIN_SETTING__KEY__MEMORY
#define SM GPUPOOL__ADMIN_SETTING__KEY__SM
#define PRIORITY GPUPOOL__ADMIN_SETTING__KEY__PRIORITY
#define WEIGHT GPUPOOL__ADMIN_SETTING__KEY__WEIGHT
#define LIMIT GPUPOOL__ADMIN_SETTING__KEY__LIMIT
#define TIME_SHARE GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE
#define BANDWIDTH GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(a_session_gets_what_it_is_given_on_one_device_or_on_all)
{
	struct gpd_ledger_session *s = gpd_ledger_open(ledger, 5, 0, 100);
	Gpupool__AdminSetting memory = setting(MEMORY, 3 * GIB, 0);
	Gpupool__AdminSetting half = setting(SM, 0, 5000), quarter = setting(MEMORY, 0, 2500);

	assert_string_equal(set_two(5, "", 2, &memory, &half), "");
	assert_true(s->devices[0].memory_max == GPD_NO_LIMIT);
	assert_int_equal(s->devices[1].memory_max, 3 * GIB);
	assert_int_equal(s->devices[1].sm_wanted, 66);
	assert_string_equal(set_two(5, "", 0, &quarter, NULL), "");
	/* A quarter of what 16 contexts leave. */
	assert_int_equal(s->devices[0].memory_max, 18 * GIB);
	assert_int_equal(s->devices[1].memory_max, 18 * GIB);
}

TEST(of_settings_of_which_one_is_wrong_none_is_made)
{
	struct gpd_ledger_session *s = gpd_ledger_open(ledger, 5, 0, 100);
	Gpupool__AdminSetting memory = setting(MEMORY, GIB, 0), weight = setting(WEIGHT, 3, 0);
	Gpupool__AdminSetting limit = setting(LIMIT, 101, 0);
	Gpupool__AdminSetting share = setting(PRIORITY, 0, 100), over = setting(SM, 0, 10001);

	assert_string_equal(set_two(5, "", 0, &memory, &weight),
			    "weight: applies to tenants, not to sessions");
	assert_string_equal(set_two(0, "default", 0, &memory, &limit),
			    "limit: 101 is out of range (1 to 100 per cent)");
	assert_string_equal(set_two(5, "", 0, &memory, &share),
			    "priority: a share of the device is not allowed");
	assert_string_equal(set_two(5, "", 0, &memory, &over), "a share of more than 100%");
	assert_string_equal(set_two(5, "", 3, &memory, NULL),
			    "unknown device 2: the daemon has 2, counted from 0");
	assert_string_equal(set_two(6, "", 0, &memory, NULL), "unknown session 6");
	assert_string_equal(set_two(0, "x", 0, &memory, NULL), "unknown tenant \"x\"");
	assert_string_equal(set_two(0, "", 0, &memory, NULL), "unknown tenant \"\"");
	assert_true(s->devices[0].memory_max == GPD_NO_LIMIT);
	assert_true(ledger->tenants[0].devices[0].memory_max == GPD_NO_LIMIT);
}

TEST(what_the_configuration_forbids_cannot_be_set)
{
	struct gpd_ledger_tenant_line *line = &ledger->tenants[0].devices[0];
	Gpupool__AdminSetting none = setting(MEMORY, 0, 0), slow = setting(BANDWIDTH, 65535, 0);
	Gpupool__AdminSetting limit = setting(LIMIT, 30, 0), share = setting(TIME_SHARE, 40, 0);

	gpd_ledger_add_tenant(ledger, 1, "other");
	assert_string_equal(set_two(0, "default", 0, &none, NULL),
			    "memory: 0 bytes are less than 2M, the smallest size");
	assert_string_equal(set_two(0, "default", 0, &slow, NULL),
			    "bandwidth: 65535 is out of range (bytes per second from 64K, as 500M; "
			    "or unlimited)");
	assert_string_equal(set_two(0, "default", 0, &limit, &share),
			    "time-share: 40% of device 0 are more than the limit, 30%");
	ledger->tenants[1].devices[0].time_share = 61;
	assert_string_equal(set_two(0, "default", 1, &share, NULL), "");
	assert_int_equal(line->time_share, 40);
	line->time_share = 0;
	ledger->policies[0] = GPD_POLICY_FIXED;
	assert_string_equal(
		set_two(0, "default", 1, &share, NULL),
		"time-share: with it those of device 0, whose policy is fixed, are 101%, "
		"more than 100%");
	assert_int_equal(line->time_share, 0);
	ledger->tenants[1].devices[0].time_share = 60;
	assert_string_equal(set_two(0, "default", 1, &share, NULL), "");
	assert_string_equal(set_two(0, "default", 1, &limit, NULL),
			    "time-share: 40% of device 0 are more than the limit, 30%");
}

TEST(sessions_follow_their_tenant_unless_they_have_their_own)
{
	struct gpd_ledger_session *own = gpd_ledger_open(ledger, 1, 0, 100);
	struct gpd_ledger_session *follows = gpd_ledger_open(ledger, 2, 0, 100);
	Gpupool__AdminSetting sm = setting(SM, 40, 0), low = setting(PRIORITY, 1, 0);

	own->priority = 2;
	assert_string_equal(set_two(0, "default", 0, &sm, &low), "");
	assert_int_equal(ledger->tenants[0].devices[0].sm_wanted, 40);
	/* Which is the tenant's. */
	assert_int_equal(follows->devices[0].sm_wanted, 0);
	assert_int_equal(own->priority, 2);
	assert_int_equal(follows->priority, 1);
}

TEST(all_multiprocessors_are_no_partition)
{
	struct gpd_ledger_session *s = gpd_ledger_open(ledger, 5, 0, 100);
	Gpupool__AdminSetting all = setting(SM, 132, 0), whole = setting(SM, 0, 10000);
	Gpupool__AdminSetting least = setting(SM, 0, 1);

	assert_string_equal(set_two(5, "", 0, &least, NULL), "");
	assert_int_equal(s->devices[0].sm_wanted, 1);
	assert_string_equal(set_two(5, "", 0, &all, NULL), "");
	assert_int_equal(s->devices[0].sm_wanted, 0);
	s->devices[0].sm_wanted = 9;
	assert_string_equal(set_two(5, "", 0, &whole, NULL), "");
	assert_int_equal(s->devices[0].sm_wanted, 0);
}

TEST(terminating_lasts_until_the_session_is_in_the_ledger_no_more)
{
	struct gpd_ledger_session *s = gpd_ledger_open(ledger, 5, 0, 100);
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	Gpupool__AdminTerminate terminate = GPUPOOL__ADMIN_TERMINATE__INIT;

	terminate.session = 5;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE;
	request.terminate = &terminate;
	assert_string_equal(ask(&request, false), "later");
	assert_string_equal(ask(&request, true), "later");
	gpd_ledger_close(ledger, s);
	assert_string_equal(ask(&request, true), "");
	assert_string_equal(ask(&request, false), "unknown session 5");
}

TEST(a_drain_waits_for_the_last_session)
{
	struct gpd_ledger_session *s = gpd_ledger_open(ledger, 5, 0, 100);
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	Gpupool__AdminDrain drain = GPUPOOL__ADMIN_DRAIN__INIT;

	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_DRAIN;
	request.drain = &drain;
	assert_string_equal(ask(&request, false), "");
	assert_true(admission.draining);
	drain.wait = true;
	assert_string_equal(ask(&request, false), "later");
	gpd_ledger_close(ledger, s);
	assert_string_equal(ask(&request, true), "");
	drain.undo = true;
	assert_string_equal(ask(&request, false), "");
	assert_false(admission.draining);
	drain.undo = false;
	assert_string_equal(ask(&request, true), "new sessions are admitted again");
}

TEST(what_only_the_supervisor_can_do_it_is_asked_for)
{
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	Gpupool__AdminReload again = GPUPOOL__ADMIN_RELOAD__INIT;
	Gpupool__AdminRetire worker = GPUPOOL__ADMIN_RETIRE__INIT;
	Gpupool__AdminEnableDevice enable = GPUPOOL__ADMIN_ENABLE_DEVICE__INIT;
	struct gpd_ledger_session *s;

	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_ENABLE_DEVICE;
	request.enable_device = &enable;
	enable.device = 1;
	assert_string_equal(ask(&request, false), "");
	enable.device = 2;
	assert_string_equal(ask(&request, false), "device 2 is not sick");
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RELOAD;
	request.reload = &again;
	assert_string_equal(ask(&request, false), "file:3: no");
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RETIRE;
	request.retire = &worker;
	worker.pid = 100;
	assert_string_equal(ask(&request, false), "");
	assert_int_equal(retired, 100);
	worker.pid = 3;
	assert_string_equal(ask(&request, false),
			    "worker 3: not found, starting or ending; gpupoolctl "
			    "worker list lists the workers");
	s = gpd_ledger_open(ledger, 5, 0, 100);
	worker.pid = 100;
	assert_string_equal(ask(&request, false), "");
	worker.terminate = true;
	assert_string_equal(ask(&request, false), "later");
	gpd_ledger_close(ledger, s);
	assert_string_equal(ask(&request, true), "");
}

TEST(a_request_of_a_later_version_is_answered)
{
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	assert_non_null(strstr(ask(&request, false), "does not know this request"));
}

UNIT_TEST_MAIN(NULL, NULL)
