/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine.h"
#include "server/supervisor/tenancy/quota.h"
#include "server/supervisor/tenancy/tenants.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

/* What a client with a token of this tenant gets of it. */
static struct gpd_assignment
admit(struct gpd_quota *quota, const char *tenant)
{
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_assignment assignment;

	assert_int_equal(gpd_tenants_admit(&quota->tenants, &hello, tenant, "tcp://10.0.0.1:1",
					   &assignment, error),
			 0);
	return assignment;
}

static void
use(struct gpd_quota *quota, const char *text)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config;

	assert_int_equal(gpd_config_parse(text, "file", &config, error, sizeof(error)), 0);
	gpd_tenants_set_config(&quota->tenants, config);
}

static const char *
name_of(const struct gpd_quota *quota, const struct gpd_assignment *assignment)
{
	return quota->ledger->tenants[assignment->tenant].name;
}

UNIT_TEST(who_waits_for_a_session_keeps_the_line_of_its_tenant)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };
	struct gpd_assignment alice, bob;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	alice = admit(&quota, "alice");
	bob = admit(&quota, "bob");
	assert_string_equal(name_of(&quota, &alice), "alice");
	assert_string_equal(name_of(&quota, &bob), "bob");
	gpd_quota_fini(&quota);
}

UNIT_TEST(the_lines_of_those_who_have_no_session_are_given_to_others_at_last)
{
	char error[GPD_CONFIG_ERROR_MAX] = "", name[32];
	struct gpd_quota quota = { 0 };
	struct gpd_assignment alice, other;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	alice = admit(&quota, "alice");
	for (int i = 0; i < 2 * GPD_LEDGER_TENANTS; i++) {
		snprintf(name, sizeof(name), "tenant%d", i);
		other = admit(&quota, name);
		assert_string_equal(name_of(&quota, &other), name);
	}
	/* Who still waits is asked again before it begins. */
	assert_string_not_equal(name_of(&quota, &alice), "alice");
	alice = admit(&quota, "alice");
	assert_string_equal(name_of(&quota, &alice), "alice");
	/* Those of the configuration stay. */
	assert_string_equal(quota.ledger->tenants[GPD_TENANT_DEFAULT].name, "default");
	gpd_quota_fini(&quota);
}

static uint64_t
code_of(const struct gpd_quota *quota, uint32_t tenant)
{
	return quota->ledger->tenants[tenant].devices[GPD_LEDGER_CODE].memory_max;
}

UNIT_TEST(those_who_have_sessions_have_equal_parts_for_device_code)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };
	struct gpd_assignment alice, bob;
	uint64_t all;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	all = code_of(&quota, GPD_TENANT_DEFAULT);
	alice = admit(&quota, "alice");
	assert_int_equal(code_of(&quota, alice.tenant), all / 2);
	assert_int_equal(code_of(&quota, GPD_TENANT_DEFAULT), all / 2);
	assert_non_null(gpd_ledger_open(quota.ledger, 1, alice.tenant, 10));
	bob = admit(&quota, "bob");
	assert_int_equal(code_of(&quota, alice.tenant), all / 3);
	assert_int_equal(code_of(&quota, bob.tenant), all / 3);
	gpd_ledger_close_worker(quota.ledger, 10);
	bob = admit(&quota, "bob");
	assert_int_equal(code_of(&quota, bob.tenant), all / 2);
	gpd_quota_fini(&quota);
}

/* Returns whether a client of the tenant is admitted that requests this class and has its own
 * worker. */
static int
ask_for(struct gpd_quota *quota, const char *tenant, Gpupool__Isolation isolation, bool *alone_p,
	char *error)
{
	Gpupool__SessionWish wish = GPUPOOL__SESSION_WISH__INIT;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	struct gpd_assignment assignment;
	int r;

	wish.isolation = isolation;
	hello.wish = &wish;
	hello.tenant = (char *)tenant;
	r = gpd_tenants_admit(&quota->tenants, &hello, "", "tcp://10.0.0.1:1", &assignment, error);
	*alone_p = assignment.dedicated;
	return r;
}

UNIT_TEST(a_class_may_be_asked_for_where_it_is_not_forbidden)
{
	static const struct {
		const char *tenant;
		Gpupool__Isolation wish;
		int result;
		bool dedicated;
	} cases[] = {
		{ "open", GPUPOOL__ISOLATION__ANY, 0, false },
		{ "open", GPUPOOL__ISOLATION__SHARED, 0, false },
		{ "open", GPUPOOL__ISOLATION__TENANT, 0, false },
		{ "open", GPUPOOL__ISOLATION__PROCESS, 0, true },
		{ "apart", GPUPOOL__ISOLATION__ANY, 0, true },
		{ "apart", GPUPOOL__ISOLATION__SHARED, 0, true },
		{ "together", GPUPOOL__ISOLATION__ANY, 0, false },
		{ "together", GPUPOOL__ISOLATION__SHARED, 0, false },
		{ "together", GPUPOOL__ISOLATION__TENANT, GP_E_INVALID, false },
		{ "together", GPUPOOL__ISOLATION__PROCESS, GP_E_INVALID, false },
	};
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota, "[tenant open]\n[tenant apart]\nisolation = process\n"
		    "[tenant together]\nisolation = shared-only\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool dedicated;

		assert_int_equal(ask_for(&quota, cases[i].tenant, cases[i].wish, &dedicated, error),
				 cases[i].result);
		assert_int_equal(dedicated, cases[i].dedicated);
	}
	assert_string_equal(error, "tenant together may not have sessions with isolation = session "
				   "(isolation = shared-only)");
	gpd_quota_fini(&quota);
}

static void
assert_kept_out(struct gpd_quota *quota, const char *proven, const char *claimed, const char *why)
{
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_assignment assignment;

	hello.tenant = (char *)claimed;
	assert_int_equal(gpd_tenants_admit(&quota->tenants, &hello, proven, "tcp://10.0.0.1:1",
					   &assignment, error),
			 GP_E_INVALID);
	assert_string_equal(error, why);
}

UNIT_TEST(who_is_kept_out_is_told_whose_sessions_there_are_none_of)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota, "[tenant default]\nsessions = 0\n[tenant b]\nsessions = 0\n");
	assert_kept_out(&quota, "", "",
			"tenant \"default\" may have no sessions, and the client names no other");
	assert_kept_out(&quota, "", "b", "tenant \"b\" may have no sessions");
	assert_kept_out(&quota, "b", "", "tenant \"b\" may have no sessions");
	assert_kept_out(&quota, "alicia", "",
			"the configuration has no tenant \"alicia\", so [tenant default] applies: "
			"tenant \"alicia\" may have no sessions");
	use(&quota, "[tenant default]\naddresses = 127.0.0.1\n");
	assert_kept_out(&quota, "alicia", "",
			"the configuration has no tenant \"alicia\", so [tenant default] applies: "
			"tenant \"default\" does not accept clients from tcp://10.0.0.1:1");
	gpd_quota_fini(&quota);
}

/* A limit of control groups is the machine's memory. */
UNIT_TEST(parts_are_of_the_memory_that_the_daemon_may_use)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };
	const struct gpd_ledger_tenant *line;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	line = &quota.ledger->tenants[0];
	assert_int_equal(quota.tenants.machine_memory, gp_machine_memory(""));
	assert_int_equal(quota.ledger->host_max, quota.tenants.machine_memory / 4);
	assert_int_equal(line->devices[GPD_LEDGER_CODE].memory_max,
			 quota.tenants.machine_memory / 2);
	assert_int_equal(line->devices[GPD_LEDGER_PINNED].memory_max,
			 quota.tenants.machine_memory / 2);
	gpd_quota_fini(&quota);
}

static void
add_devices(struct gpd_quota *quota, size_t count)
{
	Gpupool__Welcome facts = GPUPOOL__WELCOME__INIT;
	Gpupool__Device devices[3], *list[3];

	for (size_t i = 0; i < count; i++) {
		gpupool__device__init(&devices[i]);
		devices[i].total_memory = (uint64_t)1 << 30;
		list[i] = &devices[i];
	}
	facts.n_devices = count;
	facts.devices = list;
	gpd_tenants_set_devices(&quota->tenants, &facts);
}

static void
make_sick(struct gpd_quota *quota, int device)
{
	const struct gpd_device_event lost = { .kind = GPD_DEVICE_EVENT_LOST };

	assert_true(
		gpd_device_health_handle(&quota->tenants.devices[device].health, device, &lost));
}

UNIT_TEST(a_sick_device_is_not_assigned_and_numbers_stay)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };
	struct gpd_assignment alice, bob;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	int32_t number = 1;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota, "[tenant alice]\n[tenant bob]\ndevices = 1\n");
	alice = admit(&quota, "alice");
	bob = admit(&quota, "bob");
	/* Not reported yet. */
	assert_int_equal(gpd_tenants_get_usable(&quota.tenants, GPD_GROUP_SHARED), UINT32_MAX);
	add_devices(&quota, 3);
	assert_int_equal(gpd_tenants_get_usable(&quota.tenants, GPD_GROUP_SHARED), 7);
	assert_int_equal(gpd_tenants_get_usable(&quota.tenants, gpd_tenant_group(bob.tenant)), 2);
	make_sick(&quota, 1);
	assert_int_equal(gpd_tenants_get_usable(&quota.tenants, GPD_GROUP_SHARED), 5);
	assert_int_equal(gpd_tenants_get_usable(&quota.tenants, gpd_tenant_group(bob.tenant)), 0);
	assert_int_equal(gpd_tenants_check_health(&quota.tenants, &hello, &alice, error), 0);
	assert_int_equal(gpd_tenants_assign(&quota.tenants, &hello, 1, &alice, error), 0);
	assert_int_equal(alice.count, 2);
	assert_int_equal(alice.units[0].device, 0);
	assert_int_equal(alice.units[1].device, 2);
	assert_int_equal(gpd_tenants_check_assigned(&quota.tenants, &alice, error), 0);
	assert_int_equal(gpd_tenants_check_health(&quota.tenants, &hello, &bob, error),
			 GP_E_INVALID);
	assert_string_equal(error,
			    "all devices are sick; device 1: the GPU has fallen off the bus; "
			    "after the repair: gpupoolctl device enable 1");
	hello.n_devices = 1;
	hello.devices = &number;
	assert_int_equal(gpd_tenants_check_health(&quota.tenants, &hello, &alice, error),
			 GP_E_INVALID);
	assert_string_equal(error, "device 1 is sick: the GPU has fallen off the bus; use another "
				   "device, or after the repair: gpupoolctl device enable 1");
	assert_int_equal(gpd_tenants_assign(&quota.tenants, &hello, 2, &alice, error),
			 GP_E_INVALID);
	number = 2;
	assert_int_equal(gpd_tenants_assign(&quota.tenants, &hello, 2, &alice, error), 0);
	assert_int_equal(alice.units[0].device, 2);
	make_sick(&quota, 2);
	assert_int_equal(gpd_tenants_check_assigned(&quota.tenants, &alice, error), GP_E_INVALID);
	gpd_quota_fini(&quota);
}

#define MIB ((uint64_t)1 << 20)

UNIT_TEST(shares_of_memory_are_of_what_contexts_leave)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_quota quota = { 0 };
	struct gpd_ledger_tenant *line;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota, "[daemon]\nworkers-per-device = 4\n[tenant alice]\nmemory = 50%\n");
	assert_int_equal(gpd_tenants_get_places(&quota.tenants, 0), GPD_PLACES_MAX);
	/* The first worker reports its context before the devices. */
	gpd_tenants_measure_context(&quota.tenants, 0, 32 * MIB);
	add_devices(&quota, 2);
	assert_int_equal(gpd_tenants_get_places(&quota.tenants, 0), 4);
	line = &quota.ledger->tenants[admit(&quota, "alice").tenant];
	assert_int_equal(line->devices[0].memory_max, (1024 - 4 * 32) / 2 * MIB);
	/* None has been measured there. */
	assert_int_equal(line->devices[1].memory_max, (1024 - 4 * 32) / 2 * MIB);
	/* The largest one counts. */
	gpd_tenants_measure_context(&quota.tenants, 0, 64 * MIB);
	gpd_tenants_measure_context(&quota.tenants, 0, 16 * MIB);
	gpd_tenants_measure_context(&quota.tenants, 0, 4096 * MIB);
	assert_int_equal(line->devices[0].memory_max, (1024 - 4 * 64) / 2 * MIB);
	assert_int_equal(line->devices[1].memory_max, (1024 - 4 * 64) / 2 * MIB);
	/* A limit that gpupoolctl has set stays. */
	line->devices[0].memory_max = 100 * MIB;
	gpd_tenants_measure_context(&quota.tenants, 0, 96 * MIB);
	assert_int_equal(line->devices[0].memory_max, 100 * MIB);
	assert_int_equal(line->devices[1].memory_max, (1024 - 4 * 96) / 2 * MIB);
	use(&quota, "[daemon]\nisolation = shared\nworkers-per-device = 4\n"
		    "[tenant alice]\nmemory = 50%\n");
	assert_int_equal(line->devices[0].memory_max, (1024 - 96) / 2 * MIB);
	gpd_tenants_format_places(&quota.tenants, 1, GPD_PLACES_IN_USE, error);
	assert_string_equal(error, "device 1 has no place for another worker: workers-per-device = "
				   "4, all in use");
	use(&quota, "");
	assert_int_equal(gpd_tenants_get_places(&quota.tenants, 0), 2);
	gpd_tenants_format_places(&quota.tenants, 1, GPD_PLACES_IN_USE, error);
	assert_string_equal(error, "device 1 has no place for another worker: workers-per-device = "
				   "2 (a tenth of its memory), all in use");
	gpd_tenants_format_places(&quota.tenants, 1, GPD_PLACES_RESERVED, error);
	assert_string_equal(error, "device 1 has no place for another worker: workers-per-device = "
				   "2 (a tenth of its memory), the free ones reserved for waiting "
				   "clients");
	gpd_tenants_format_places(&quota.tenants, 1, GPD_PLACES_HELD_BACK, error);
	assert_string_equal(error, "device 1 has no place for another worker of this tenant: "
				   "workers-per-device = 2 (a tenth of its memory), the free ones "
				   "held back for tenants that have none");
	gpd_quota_fini(&quota);
}

UNIT_TEST(places_are_held_back_for_tenants_that_may_use_the_device_apart)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	struct gpd_assignment guest;
	struct gpd_quota quota = { 0 };

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota,
	    "[tenant alice]\n[tenant bob]\ndevices = 1\n[tenant carol]\nisolation = shared\n"
	    "[tenant dave]\nsessions = 0\n[tenant eve]\nsm = 50%\n");
	add_devices(&quota, 2);
	assert_true(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "alice").tenant, 0));
	assert_false(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "bob").tenant, 0));
	assert_true(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "bob").tenant, 1));
	assert_false(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "carol").tenant, 0));
	assert_false(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "eve").tenant, 0));
	assert_false(gpd_tenants_needs_place(&quota.tenants, admit(&quota, "default").tenant, 0));
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++)
		assert_false(strcmp(quota.ledger->tenants[i].name, "dave") == 0 &&
			     gpd_tenants_needs_place(&quota.tenants, i, 0));
	assert_int_equal(
		gpd_tenants_admit(&quota.tenants, &hello, "guest", "127.0.0.1", &guest, error), 0);
	assert_true(gpd_tenants_needs_place(&quota.tenants, guest.tenant, 0));
	make_sick(&quota, 0);
	assert_false(gpd_tenants_needs_place(&quota.tenants, guest.tenant, 0));
	gpd_quota_fini(&quota);
}

UNIT_TEST(the_first_device_is_the_one_that_the_client_names_or_may_use)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	struct gpd_quota quota = { 0 };
	struct gpd_assignment alice, bob;
	int32_t number = 3;

	assert_int_equal(gpd_quota_init(&quota, NULL, error), 0);
	use(&quota,
	    "[device 0]\nvirtual-number = 2\n[tenant alice]\n[tenant bob]\ndevices = 1,2\n");
	add_devices(&quota, 3);
	alice = admit(&quota, "alice");
	bob = admit(&quota, "bob");
	assert_int_equal(gpd_tenants_get_first_device(&quota.tenants, &hello, &alice), 0);
	assert_int_equal(gpd_tenants_get_first_device(&quota.tenants, &hello, &bob), 1);
	make_sick(&quota, 1);
	assert_int_equal(gpd_tenants_get_first_device(&quota.tenants, &hello, &bob), 2);
	hello.n_devices = 1;
	hello.devices = &number;
	assert_int_equal(gpd_tenants_get_first_device(&quota.tenants, &hello, &alice), 2);
	number = 9;
	assert_int_equal(gpd_tenants_get_first_device(&quota.tenants, &hello, &alice), 0);
	gpd_quota_fini(&quota);
}

UNIT_TEST_MAIN(NULL, NULL)
