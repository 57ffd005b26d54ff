/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_lint.h"
#include "tests/unit/server/config_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define H200_BYTES (143771 * MIB)
#define H200_SMS 132

UNIT_TEST(without_a_file_there_is_one_tenant_without_limits)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config;
	struct gpd_config_device device;
	int found = -1;

	assert_int_equal(gpd_config_load(NULL, &config, error, sizeof(error)), 0);
	assert_int_equal(config->tenant_count, 1);
	assert_string_equal(config->tenants[0].name, "default");
	assert_int_equal(config->tenants[0].bandwidth, GPD_NO_LIMIT);
	assert_int_equal(config->tenants[0].sessions_max, UINT32_MAX);
	assert_int_equal(config->tenants[0].priority, 0);
	assert_int_equal(config->tenants[0].isolation, GPD_CONFIG_ISOLATION_TENANT);
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		const struct gpd_config_quota *quota = &config->tenants[0].devices[i];

		assert_int_equal(quota->allowed, 1);
		assert_int_equal(quota->weight, 100);
		assert_int_equal(quota->limit, 100);
		assert_int_equal(quota->time_share, 0);
		assert_int_equal(
			gpd_config_get_bytes(&config->tenants[0].devices[i].memory, H200_BYTES),
			GPD_NO_LIMIT);
		assert_int_equal(gpd_config_get_bytes(&config->tenants[0].devices[i].session_memory,
						      H200_BYTES),
				 GPD_NO_LIMIT);
		assert_int_equal(gpd_config_get_sms(&config->tenants[0].devices[i].sm, H200_SMS),
				 0);
		assert_int_equal(
			gpd_config_get_sms(&config->tenants[0].devices[i].session_sm, H200_SMS), 0);
	}
	assert_int_equal(config->sessions_max, 256);
	assert_int_equal(config->metrics_port, 0);
	assert_string_equal(config->admin_socket, "");
	device = gpd_config_device(config, 0, UUID);
	assert_int_equal(device.policy, GPD_POLICY_NONE);
	assert_int_equal(device.virtual_number, 1);
	assert_int_equal(device.visible, 1);
	assert_int_equal(device.sm_granularity, 2);
	assert_int_equal(gpd_config_admit(config, NULL, "anybody", "192.0.2.1", &found, error,
					  sizeof(error)),
			 0);
	assert_int_equal(found, GPD_TENANT_DEFAULT);
	gpd_config_free(config);
	gpd_config_free(NULL);
}

UNIT_TEST(keys_of_the_daemon_are_read)
{
	struct gpd_config *config = parsed("[daemon]\n"
					   "sessions = 12\n"
					   "isolation = process\n"
					   "metrics = [::1]:9400\n"
					   "admin-socket = /run/gpupool/admin\n"
					   "sessions-per-address = 7\n"
					   "idle-timeout = 3600\n"
					   "timeout = 90\n"
					   "on-hang = restart\n"
					   "software-device = off\n"
					   "ready-workers = 3\n"
					   "workers-per-device = 6\n"
					   "host-memory = 12.5%\n"
					   "code-memory = 10%\n"
					   "pinned-memory = 20%\n"
					   "[tenant a]\n"
					   "isolation = shared\n"
					   "code-memory = 5%\n"
					   "pinned-memory = 30%\n"
					   "[tenant b]\n"
					   "code-memory = all\n");

	assert_int_equal(config->sessions_max, 12);
	assert_int_equal(config->sessions_per_address, 7);
	assert_int_equal(config->idle_timeout, 3600);
	assert_int_equal(config->timeout, 90);
	assert_int_equal(config->on_hang, GPD_CONFIG_ON_HANG_RESTART);
	assert_int_equal(config->software_device, GPD_CONFIG_SOFTWARE_OFF);
	assert_int_equal(config->ready_workers, 3);
	assert_int_equal(gpd_config_device(config, 0, NULL).workers, 6);
	assert_int_equal(gpd_config_get_host_memory(config, 8000), 1000);
	assert_int_equal(gpd_config_get_code_memory(config, 0, 8000, 1), 800);
	assert_int_equal(gpd_config_get_code_memory(config, 0, 8000, 3), 266);
	assert_int_equal(gpd_config_get_code_memory(config, 1, 8000, 3), 400);
	assert_int_equal(gpd_config_get_code_memory(config, 2, 8000, 3), 8000);
	assert_int_equal(gpd_config_get_pinned_memory(config, 0, 8000, 2), 800);
	assert_int_equal(gpd_config_get_pinned_memory(config, 1, 8000, 2), 2400);
	assert_int_equal(config->isolation, GPD_CONFIG_ISOLATION_SESSION);
	assert_string_equal(config->metrics_host, "::1");
	assert_int_equal(config->metrics_port, 9400);
	assert_string_equal(config->admin_socket, "/run/gpupool/admin");
	assert_int_equal(config->tenants[0].isolation, GPD_CONFIG_ISOLATION_SESSION);
	assert_int_equal(config->tenants[1].isolation, GPD_CONFIG_ISOLATION_SHARED);
	assert_int_equal(config->tenants[2].isolation, GPD_CONFIG_ISOLATION_SESSION);
	gpd_config_free(config);

	config = parsed("[daemon]\nmetrics = localhost:80\n");
	assert_string_equal(config->metrics_host, "localhost");
	assert_int_equal(gpd_config_get_host_memory(config, 8000), 2000);
	assert_int_equal(gpd_config_get_code_memory(config, 0, 8000, 1), 4000);
	assert_int_equal(gpd_config_get_code_memory(config, 0, 8000, 0), 4000);
	assert_int_equal(gpd_config_get_pinned_memory(config, 0, 8000, 1), 4000);
	assert_int_equal(config->metrics_port, 80);
	gpd_config_free(config);

	config = parsed("[daemon]\nsessions-per-address = unlimited\nidle-timeout = never\n");
	assert_int_equal(config->sessions_per_address, UINT32_MAX);
	assert_int_equal(config->idle_timeout, 0);
	gpd_config_free(config);

	config = parsed("[daemon]\nmetrics = off\n");
	assert_int_equal(config->metrics_port, 0);
	gpd_config_free(config);
}

UNIT_TEST(section_that_names_a_device_best_decides_key_by_key)
{
	struct gpd_config *config = parsed("[device " UUID "]\n"
					   "virtual-number = 4\n"
					   "[device 1]\n"
					   "virtual-number = 2\n"
					   "visible = no\n"
					   "[device *]\n"
					   "policy = best-effort\n"
					   "visible = yes\n"
					   "sm-granularity = 8\n");
	struct gpd_config_device device = gpd_config_device(config, 0, NULL);

	assert_int_equal(device.policy, GPD_POLICY_BEST_EFFORT);
	assert_int_equal(device.virtual_number, 1);
	assert_int_equal(device.visible, 1);
	assert_int_equal(device.sm_granularity, 8);

	device = gpd_config_device(config, 1, "GPU-ffffffff-89ab-cdef-0123-456789abcdef");
	assert_int_equal(device.policy, GPD_POLICY_BEST_EFFORT);
	assert_int_equal(device.virtual_number, 2);
	assert_int_equal(device.visible, 0);

	device = gpd_config_device(config, 1, "GPU-01234567-89AB-CDEF-0123-456789abcdef");
	assert_int_equal(device.virtual_number, 4);
	assert_int_equal(device.visible, 0);
	assert_int_equal(device.sm_granularity, 8);
	gpd_config_free(config);
}

static uint32_t
places(const char *text, int device, uint64_t memory, uint64_t context)
{
	struct gpd_config *config = parsed(text);
	struct gpd_config_device rule = gpd_config_device(config, device, NULL);
	uint32_t result = gpd_config_get_places(&rule, memory, context);

	gpd_config_free(config);
	return result;
}

UNIT_TEST(places_of_a_device_are_configured_or_fit_a_tenth_of_its_memory)
{
	static const char *const text = "[daemon]\nworkers-per-device = 5\n"
					"[device 1]\nworkers-per-device = 7\n";

	assert_int_equal(places(text, 0, 80 * GIB, GIB / 2), 5);
	assert_int_equal(places(text, 1, 80 * GIB, GIB / 2), 7);
	assert_int_equal(places("", 0, 80 * GIB, GIB / 2), 16);
	assert_int_equal(places("", 0, 8 * GIB, GIB / 2), 2);
	assert_int_equal(places("", 0, 80 * GIB, 1), GPD_PLACES_MAX);
	assert_int_equal(places("", 0, 80 * GIB, 0), GPD_PLACES_MAX);
	assert_true(gpd_config_get_remaining(80 * GIB, 16, GIB / 2) == 72 * GIB);
	assert_true(gpd_config_get_remaining(GIB, 3, GIB / 2) == 0);
}

static bool
has_one_worker(const char *text)
{
	struct gpd_config *config = parsed(text);
	struct gpd_config_device rules[] = { gpd_config_device(config, 0, NULL),
					     gpd_config_device(config, 1, NULL) };
	bool result = gpd_config_has_one_worker(config, rules, 2, 0);

	gpd_config_free(config);
	return result;
}

UNIT_TEST(a_device_has_one_worker_if_all_its_tenants_are_shared)
{
	assert_false(has_one_worker(""));
	assert_true(has_one_worker("[daemon]\nisolation = shared\n[tenant a]\n"));
	assert_false(has_one_worker("[daemon]\nisolation = shared\n"
				    "[tenant a]\nisolation = tenant\n"));
	assert_true(has_one_worker("[daemon]\nisolation = shared\n"
				   "[tenant a]\nisolation = tenant\ndevices = 1\n"));
	assert_true(has_one_worker("[device 0]\npolicy = equal\n[tenant a]\n"));
	assert_false(has_one_worker("[tenant a]\nsm = 50%\n"));
	assert_true(has_one_worker("[tenant default]\nsessions = 0\n[tenant a]\nsm = 50%\n"));
	assert_false(has_one_worker("[tenant default]\nsessions = 0\n"
				    "[tenant a]\nsm = 50%\nisolation = session\n"));
}

static bool
lint_shares(const char *text, uint64_t context, char answer[GPD_CONFIG_ERROR_MAX])
{
	const struct gpd_lint_device devices[] = { { .memory = 80 * GIB, .context = context } };
	struct gpd_config *config = parsed(text);
	bool result = gpd_lint_shares(config, devices, 1, 0, answer);

	gpd_config_free(config);
	return result;
}

UNIT_TEST(memory_that_percentages_refer_to_is_described)
{
	char text[GPD_CONFIG_ERROR_MAX] = "";

	assert_false(lint_shares("[tenant a]\nmemory = 4G\n", GIB / 2, text));
	assert_false(lint_shares("[tenant a]\nmemory = 40%\n", 0, text));
	assert_true(lint_shares("[tenant a]\nmemory = 40%\n", GIB / 2, text));
	assert_string_equal(text,
			    "device 0: percentages of memory are of 72 GiB: 80 GiB without 16 "
			    "contexts of about 512 MiB");
	assert_true(lint_shares("[daemon]\nisolation = shared\n[tenant a]\nmemory = 40%\n", GIB / 2,
				text));
	assert_string_equal(text,
			    "device 0: percentages of memory are of 79.5 GiB: 80 GiB without 1 "
			    "context of about 512 MiB");
}

static void
add_warning(void *text, const char *warning)
{
	strcat(text, warning);
	strcat(text, "\n");
}

UNIT_TEST(old_name_of_a_key_is_accepted_with_a_warning)
{
	char text[2 * GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config = parsed("[device 0]\n"
					   "export = no\n"
					   "[device 1]\n"
					   "visible = no\n"
					   "[device *]\n"
					   "export = yes\n");

	assert_int_equal(gpd_config_device(config, 0, NULL).visible, 0);
	assert_int_equal(gpd_config_device(config, 1, NULL).visible, 0);
	assert_int_equal(gpd_config_device(config, 2, NULL).visible, 1);
	gpd_lint_config(&(struct gpd_lint){ .config = config, .report = add_warning, .arg = text });
	assert_string_equal(text, "gpupoold.conf:2: export: deprecated; use visible\n"
				  "gpupoold.conf:6: export: deprecated; use visible\n");
	gpd_config_free(config);
}

UNIT_TEST(policies_are_known_by_their_names)
{
	static const char *const names[] = { "none", "best-effort", "equal", "fixed" };

	for (uint32_t i = 0; i < 4; i++) {
		char text[64];
		struct gpd_config *config;

		snprintf(text, sizeof(text), "[device 31]\npolicy = %s\n", names[i]);
		config = parsed(text);
		assert_int_equal(gpd_config_device(config, 31, NULL).policy, i);
		gpd_config_free(config);
	}
}

UNIT_TEST(keys_of_a_tenant_are_read)
{
	struct gpd_config *config = parsed("[tenant vision.lab-2]\n"
					   "devices = 0, 2\n"
					   "memory = 16G\n"
					   "sm = 25%\n"
					   "weight = 200\n"
					   "limit = 80\n"
					   "time-share = 30%\n"
					   "priority = high\n"
					   "bandwidth = 1.5G\n"
					   "sessions = 7\n"
					   "isolation = process\n"
					   "session-memory = 8GiB\n"
					   "session-sm = 12\n"
					   "users = alice,bob\n"
					   "certificate = node 7, vision.example\n"
					   "addresses = 10.0.0.0/8, ::1\n");
	const struct gpd_config_tenant *tenant = &config->tenants[1];
	const struct gpd_config_quota *quota = &tenant->devices[2];

	assert_int_equal(config->tenant_count, 2);
	assert_int_equal(gpd_config_tenant_find(config, "vision.lab-2"), 1);
	assert_int_equal(gpd_config_tenant_find(config, "vision"), -1);
	assert_int_equal(tenant->devices[0].allowed, 1);
	assert_int_equal(tenant->devices[1].allowed, 0);
	assert_int_equal(quota->allowed, 1);
	assert_amount(&quota->memory, 16 * GIB, 0);
	assert_amount(&quota->sm, 0, 2500);
	assert_int_equal(quota->weight, 200);
	assert_int_equal(quota->limit, 80);
	assert_int_equal(quota->time_share, 30);
	assert_amount(&quota->session_memory, 8 * GIB, 0);
	assert_amount(&quota->session_sm, 12, 0);
	assert_int_equal(tenant->priority, 2);
	assert_int_equal(tenant->bandwidth, 1536 * MIB);
	assert_int_equal(tenant->sessions_max, 7);
	assert_int_equal(tenant->isolation, GPD_CONFIG_ISOLATION_SESSION);
	assert_int_equal(tenant->user_count, 2);
	assert_string_equal(tenant->users[1], "bob");
	assert_int_equal(tenant->certificate_count, 2);
	assert_string_equal(tenant->certificates[0], "node 7");
	assert_int_equal(gpd_config_certificate_find(config, "vision.example"), 1);
	assert_int_equal(gpd_config_certificate_find(config, "vision.lab-2"), 1);
	assert_int_equal(gpd_config_certificate_find(config, "node"), -1);
	assert_int_equal(tenant->network_count, 2);
	assert_int_equal(tenant->networks[0].address[0], 10);
	assert_int_equal(tenant->networks[0].bits, 8);
	assert_int_equal(tenant->networks[1].is_v6, 1);
	assert_int_equal(tenant->networks[1].bits, 128);
	gpd_config_free(config);
}

UNIT_TEST(words_for_no_limit_are_read)
{
	struct gpd_config *config = parsed("[tenant a]\n"
					   "devices = all\n"
					   "memory = all\n"
					   "sm = all\n"
					   "session-memory = all\n"
					   "session-sm = all\n"
					   "bandwidth = unlimited\n"
					   "sessions = unlimited\n"
					   "priority = low\n");

	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[31].memory, GIB),
			 GPD_NO_LIMIT);
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[31].session_memory, GIB),
			 GPD_NO_LIMIT);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[31].sm, 132), 0);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[31].session_sm, 132), 0);
	assert_int_equal(config->tenants[1].devices[31].allowed, 1);
	assert_int_equal(config->tenants[1].bandwidth, GPD_NO_LIMIT);
	assert_int_equal(config->tenants[1].sessions_max, UINT32_MAX);
	assert_int_equal(config->tenants[1].priority, 1);
	gpd_config_free(config);
}

struct size_case {
	const char *text;
	uint64_t number, share;
};

UNIT_TEST(sizes_are_binary_and_shares_have_two_decimals)
{
	static const struct size_case cases[] = {
		{ "2097152", 2 * MIB, 0 },
		{ "2048K", 2 * MIB, 0 },
		{ "512M", 512 * MIB, 0 },
		{ "512MB", 512 * MIB, 0 },
		{ "512MiB", 512 * MIB, 0 },
		{ "16g", 16 * GIB, 0 },
		{ "1.5G", 1536 * MIB, 0 },
		{ "0.25GiB", 256 * MIB, 0 },
		{ "1T", 1024 * GIB, 0 },
		{ "1048576T", 1ull << 60, 0 },
		{ "40%", 0, 4000 },
		{ "12.5%", 0, 1250 },
		{ "33.33%", 0, 3333 },
		{ "100%", 0, 10000 },
		{ "0.01%", 0, 1 },
		{ "all", GPD_NO_LIMIT, 0 },
		{ "150755868672", 150755868672, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		struct gpd_config *config;

		snprintf(text, sizeof(text), "[tenant a]\nmemory = %s\n", cases[i].text);
		config = parsed(text);
		assert_amount(&config->tenants[1].devices[0].memory, cases[i].number,
			      cases[i].share);
		gpd_config_free(config);
	}
}

UNIT_TEST(key_for_one_device_goes_before_the_key_for_all_in_any_order)
{
	struct gpd_config *config = parsed("[tenant a]\n"
					   "memory.1 = 8G\n"
					   "memory = 16G\n"
					   "weight = 50\n"
					   "weight.0 = 500\n"
					   "limit.3 = 30\n");
	const struct gpd_config_quota *devices = config->tenants[1].devices;

	assert_amount(&devices[0].memory, 16 * GIB, 0);
	assert_amount(&devices[1].memory, 8 * GIB, 0);
	assert_amount(&devices[2].memory, 16 * GIB, 0);
	assert_int_equal(devices[0].weight, 500);
	assert_int_equal(devices[1].weight, 50);
	assert_int_equal(devices[3].limit, 30);
	assert_int_equal(devices[2].limit, 100);
	gpd_config_free(config);
}

UNIT_TEST(names_of_tenants_have_up_to_63_characters)
{
	char name[66], text[128], wanted[256];
	struct gpd_config *config;

	memset(name, 'n', sizeof(name));
	name[63] = 0;
	snprintf(text, sizeof(text), "[ tenant  %s ]\nweight = 3\n", name);
	config = parsed(text);
	assert_int_equal(gpd_config_tenant_find(config, name), 1);
	gpd_config_free(config);

	name[63] = 'n';
	name[64] = 0;
	snprintf(text, sizeof(text), "[tenant %s]\n", name);
	snprintf(wanted, sizeof(wanted),
		 "gpupoold.conf:1: [tenant %s]: \"%s\" is not a valid name (1 to 63 of A-Z a-z 0-9 "
		 ". _ -)",
		 name, name);
	assert_refused(text, wanted);
}

static int
admitted(const struct gpd_config *config, const char *name, const char *user, const char *address)
{
	char error[256] = "";
	int found = -1;
	int r = gpd_config_admit(config, name, user, address, &found, error, sizeof(error));

	if (r)
		print_error("%s\n", error);
	assert_int_equal(r, 0);
	return found;
}

static void
assert_not_admitted(const struct gpd_config *config, const char *name, const char *user,
		    const char *address, const char *wanted)
{
	char error[256] = "";
	int found = -1;

	assert_int_equal(
		gpd_config_admit(config, name, user, address, &found, error, sizeof(error)),
		GP_E_INVALID);
	assert_int_equal(found, -1);
	assert_string_equal(error, wanted);
}

UNIT_TEST(client_gets_the_tenant_it_names_or_the_first_with_its_user)
{
	struct gpd_config *config = parsed("[tenant a]\nusers = alice\n"
					   "[tenant default]\n"
					   "[tenant b]\nusers = bob, alice\n"
					   "[tenant c]\n");

	assert_int_equal(admitted(config, NULL, "alice", "192.0.2.1"), 1);
	assert_int_equal(admitted(config, "", "bob", "192.0.2.1"), 2);
	assert_int_equal(admitted(config, NULL, "carol", "192.0.2.1"), 0);
	assert_int_equal(admitted(config, NULL, NULL, NULL), 0);
	assert_int_equal(admitted(config, "c", "alice", NULL), 3);
	assert_int_equal(admitted(config, "b", "carol", NULL), 2);
	assert_int_equal(admitted(config, "default", "alice", NULL), 0);
	assert_not_admitted(config, "d", "alice", NULL, "unknown tenant \"d\"");
	gpd_config_free(config);
}

UNIT_TEST(addresses_of_a_tenant_keep_others_out)
{
	struct gpd_config *config = parsed("[tenant a]\nusers = alice\n"
					   "addresses = 10.0.0.0/8, 192.0.2.128/25, fd00::/9\n"
					   "[tenant b]\nusers = alice\naddresses = 127.0.0.1\n"
					   "[tenant c]\naddresses = ::1\n"
					   "[tenant d]\naddresses = 0.0.0.0/0\n");

	assert_int_equal(admitted(config, "a", NULL, "10.255.0.1"), 1);
	assert_int_equal(admitted(config, "a", NULL, "::ffff:10.255.0.1"), 1);
	assert_int_equal(admitted(config, "a", NULL, "192.0.2.128"), 1);
	assert_int_equal(admitted(config, "a", NULL, "fd7f::1%eth0"), 1);
	assert_int_equal(admitted(config, "a", NULL, "tcp://10.1.2.3:4711"), 1);
	assert_int_equal(admitted(config, "a", NULL, "tcp://[fd00::1]:4711"), 1);
	assert_int_equal(admitted(config, "a", NULL, "tcp://[fd00::1%eth0]:4711"), 1);
	assert_int_equal(admitted(config, "a", NULL, "tcp://[::ffff:10.1.2.3]:4711"), 1);
	assert_not_admitted(config, "a", NULL, "192.0.2.127",
			    "tenant \"a\" does not accept clients from 192.0.2.127");
	assert_not_admitted(config, "a", NULL, "fd80::1",
			    "tenant \"a\" does not accept clients from fd80::1");
	assert_not_admitted(config, "a", NULL, "tcp://11.1.2.3:4711",
			    "tenant \"a\" does not accept clients from tcp://11.1.2.3:4711");
	assert_not_admitted(config, "a", NULL, "somewhere",
			    "tenant \"a\" does not accept clients from somewhere");
	assert_not_admitted(config, "a", NULL, "pigeon://10.1.2.3",
			    "tenant \"a\" does not accept clients from pigeon://10.1.2.3");
	assert_not_admitted(config, "a", NULL, NULL,
			    "tenant \"a\" does not accept clients from this machine");
	assert_not_admitted(config, "d", NULL, "2001:db8::1",
			    "tenant \"d\" does not accept clients from 2001:db8::1");

	/* A client that came over no network is on this machine, whichever family that names. */
	assert_int_equal(admitted(config, "b", NULL, NULL), 2);
	assert_int_equal(admitted(config, "c", NULL, "unix:///run/a"), 3);

	/* The user belongs where both fit. */
	assert_int_equal(admitted(config, NULL, "alice", "10.0.0.1"), 1);
	assert_int_equal(admitted(config, NULL, "alice", "127.0.0.1"), 2);
	assert_int_equal(admitted(config, NULL, "alice", "192.0.2.1"), 0);
	gpd_config_free(config);
}

UNIT_TEST(default_tenant_can_be_of_addresses_and_devices)
{
	struct gpd_config *config =
		parsed("[tenant default]\naddresses = 127.0.0.0/8\ndevices = 1\n");
	assert_int_equal(admitted(config, NULL, "bob", "127.1.2.3"), 0);
	assert_not_admitted(config, NULL, "bob", "128.0.0.1",
			    "tenant \"default\" does not accept clients from 128.0.0.1");
	assert_int_equal(config->tenants[0].devices[0].allowed, 0);
	assert_int_equal(config->tenants[0].devices[1].allowed, 1);
	gpd_config_free(config);
}

UNIT_TEST(amounts_become_numbers_of_the_device)
{
	struct gpd_config *config = parsed("[tenant a]\n"
					   "memory = 50%\nsm = 25%\n"
					   "memory.1 = 1.001G\nsm.1 = 33\n"
					   "memory.2 = 1T\nsm.2 = 200\n"
					   "memory.3 = 0.01%\nsm.3 = 0.5%\n"
					   "memory.4 = 100%\nsm.4 = 100%\n"
					   "memory.5 = 33.33%\nsm.5 = 33.33%\n"
					   "session-memory.0 = 25%\nsession-sm.0 = 12.5%\n");

	/* 71885.5 MiB, of which 2 MiB divide 71884. */
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[0].memory, H200_BYTES),
			 71884 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[0].sm, H200_SMS), 33);
	assert_int_equal(
		gpd_config_get_bytes(&config->tenants[1].devices[0].session_memory, H200_BYTES),
		35942 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[0].session_sm, H200_SMS),
			 16);
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[1].memory, H200_BYTES),
			 1024 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[1].sm, H200_SMS), 33);
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[2].memory, H200_BYTES),
			 143770 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[2].sm, H200_SMS), 132);
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[3].memory, GIB), 2 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[3].sm, H200_SMS), 1);
	assert_int_equal(gpd_config_get_bytes(&config->tenants[1].devices[4].memory, H200_BYTES),
			 143770 * MIB);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[4].sm, H200_SMS), 132);
	assert_int_equal(gpd_config_get_sms(&config->tenants[1].devices[5].sm, H200_SMS), 43);
	gpd_config_free(config);
}

UNIT_TEST(quotas_that_did_not_change_are_equal_byte_for_byte)
{
	struct gpd_config *one = parsed("[tenant a]\nmemory = 4G\nweight.3 = 7\n");
	struct gpd_config *same = parsed("# moved\n[tenant b]\n[tenant a]\n weight.3 = 7\n"
					 "memory = 4096M\n");
	const struct gpd_config_quota *quotas = one->tenants[1].devices;

	assert_memory_equal(quotas, same->tenants[2].devices, sizeof(one->tenants[1].devices));
	assert_memory_not_equal(quotas, same->tenants[1].devices, sizeof(*quotas));
	gpd_config_free(one);
	gpd_config_free(same);
}

UNIT_TEST_MAIN(NULL, NULL)
