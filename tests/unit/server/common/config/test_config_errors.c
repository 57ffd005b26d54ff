/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/config_fixture.h"

#include <stdio.h>
#include <string.h>

UNIT_TEST(wrong_keys_of_the_daemon_are_refused)
{
	static const struct refusal refusals[] = {
		{ "[daemon]\nsessions = 0\n",
		  "gpupoold.conf:2: [daemon] sessions = 0: \"0\" is not a number from 1 to 4096" },
		{ "[daemon]\nsessions = 4097\n", "gpupoold.conf:2: [daemon] sessions = 4097: "
						 "\"4097\" is not a number from 1 to 4096" },
		{ "[daemon]\nisolation = vm\n",
		  "gpupoold.conf:2: [daemon] isolation = vm: \"vm\" "
		  "is not one of shared, tenant, session, shared-only" },
		{ "[daemon]\nmetrics = 0\n",
		  "gpupoold.conf:2: [daemon] metrics = 0: \"0\" is not an address to listen on "
		  "(9400, 127.0.0.1:9400, [::1]:9400 or off)" },
		{ "[daemon]\nmetrics = ::1:9400\n",
		  "gpupoold.conf:2: [daemon] metrics = ::1:9400: \"::1:9400\" is not an address to "
		  "listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)" },
		{ "[daemon]\nmetrics = :9400\n",
		  "gpupoold.conf:2: [daemon] metrics = :9400: \":9400\" is not an address to "
		  "listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)" },
		{ "[daemon]\nmetrics = my host:80\n",
		  "gpupoold.conf:2: [daemon] metrics = my host:80: \"my host:80\" is not an "
		  "address to listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)" },
		{ "[daemon]\nmetrics = h:65536\n",
		  "gpupoold.conf:2: [daemon] metrics = h:65536: \"h:65536\" is not an address to "
		  "listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)" },
		{ "[daemon]\nadmin-socket = admin\n",
		  "gpupoold.conf:2: [daemon] admin-socket = admin: \"admin\" is not an absolute "
		  "path of at most 107 bytes (/run/gpupool/admin)" },
		{ "[daemon]\nmemory = 1G\n",
		  "gpupoold.conf:2: [daemon] memory = 1G: unknown key (sessions, "
		  "isolation, ready-workers, workers-per-device, host-memory, code-memory, "
		  "pinned-memory, lanes, "
		  "sessions-per-address, worker-idle-timeout, quarantine, idle-timeout, on-hang, "
		  "timeout, "
		  "software-device, "
		  "metrics, "
		  "admin-socket, tokens, certificate, key, client-authority, crl, usage)" },
		{ "[daemon]\nsessions-per-address = 0\n",
		  "gpupoold.conf:2: [daemon] sessions-per-address = 0: \"0\" is neither a number "
		  "from 1 "
		  "to 4096 nor unlimited" },
		{ "[daemon]\nidle-timeout = 0\n", "gpupoold.conf:2: [daemon] idle-timeout = 0: "
						  "\"0\" is neither a number of seconds "
						  "from 1 to 10000000 nor never" },
		{ "[daemon]\ntimeout = 0\n", "gpupoold.conf:2: [daemon] timeout = 0: \"0\" is not "
					     "a whole number of seconds from 1 to 86400" },
		{ "[daemon]\nsoftware-device = yes\n",
		  "gpupoold.conf:2: [daemon] software-device = yes: \"yes\" is neither on nor "
		  "off" },
		{ "[daemon]\ntokens = here\n",
		  "gpupoold.conf:2: [daemon] tokens = here: \"here\" is not an absolute path of at "
		  "most 255 bytes (/etc/gpupool/tokens)" },
		{ "[daemon]\nsessions.0 = 1\n",
		  "gpupoold.conf:2: [daemon] sessions.0 = 1: sessions cannot differ from device to "
		  "device" },
	};

	ASSERT_ALL_REFUSED(refusals);
}

UNIT_TEST(wrong_sections_and_keys_of_devices_are_refused)
{
	static const struct refusal refusals[] = {
		{ "[device]\n", "gpupoold.conf:1: [device]: \"\" is not a device (0, *, or "
				"GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)" },
		{ "[device 32]\n",
		  "gpupoold.conf:1: [device 32]: \"32\" is not a device from 0 to 31" },
		{ "[device GPU-0123]\n",
		  "gpupoold.conf:1: [device GPU-0123]: \"GPU-0123\" is not a device (0, *, or "
		  "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx)" },
		{ "[device 0]\n[device *]\n[device 00]\n",
		  "gpupoold.conf:3: [device 00]: duplicate of line 1" },
		{ "[device " UUID "]\n\n[device gpu-01234567-89ab-cdef-0123-456789abcdef]\n",
		  "gpupoold.conf:3: [device gpu-01234567-89ab-cdef-0123-456789abcdef]: duplicate "
		  "of line 1" },
		{ "[device 0]\npolicy = fair\n",
		  "gpupoold.conf:2: [device 0] policy = fair: \"fair\" is not one of none, "
		  "best-effort, equal, fixed" },
		{ "[device 0]\nvirtual-number = 65\n",
		  "gpupoold.conf:2: [device 0] virtual-number = 65: \"65\" is not a number from 1 "
		  "to 64" },
		{ "[device 0]\nvisible = true\n",
		  "gpupoold.conf:2: [device 0] visible = true: \"true\" is neither yes nor no" },
		{ "[device 0]\nworkers-per-device = 0\n",
		  "gpupoold.conf:2: [device 0] workers-per-device = 0: \"0\" is not a number from "
		  "1 to 4096" },
		{ "[device 0]\nsm-granularity = 4\n",
		  "gpupoold.conf:2: [device 0] sm-granularity = 4: \"4\" is neither 2 nor 8" },
		{ "[device 0]\nweight = 4\n",
		  "gpupoold.conf:2: [device 0] weight = 4: unknown key (policy, "
		  "virtual-number, visible, sm-granularity, workers-per-device)" },
	};

	ASSERT_ALL_REFUSED(refusals);
}

UNIT_TEST(sizes_that_are_none_are_refused)
{
	static const char *const none[] = {
		"12Q",
		"G",
		"-1G",
		"1,5G",
		"1.G",
		".5G",
		"16 G",
		"1GG",
		"1Gib2",
		"0x1G",
		"101%",
		"0%",
		"12.345%",
		"-5%",
		"%",
		"all of it",
		"ALL",
		"1e3M",
		"+1G",
		"5%%",
		"2048576T",
		"1.0000001G",
		"99999999999999999999999999",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		char text[64], wanted[256];

		snprintf(text, sizeof(text), "\n[tenant a]\nmemory = %s\n", none[i]);
		snprintf(wanted, sizeof(wanted),
			 "gpupoold.conf:3: [tenant a] memory = %s: \"%s\" is not a valid size: "
			 "use 2M or more (16G), a percentage (40%%) or all",
			 none[i], none[i]);
		assert_refused(text, wanted);
	}
}

/* Of a tenant: parts of a device. */
static const struct refusal tenant_shares[] = {
	{ "[tenant a]\nmemory = 16\n",
	  "gpupoold.conf:2: [tenant a] memory = 16: \"16\" is not a valid size: use 2M or more "
	  "(16G), a percentage (40%) or all" },
	{ "[tenant a]\nsession-memory =\n",
	  "gpupoold.conf:2: [tenant a] session-memory = : \"\" is not a valid size: use 2M or more "
	  "(16G), a percentage (40%) or all" },
	{ "[tenant a]\nsm = 0\n",
	  "gpupoold.conf:2: [tenant a] sm = 0: \"0\" is not a valid number of multiprocessors: use "
	  "1 or more (33), a percentage (25%) or all" },
	{ "[tenant a]\nsession-sm.3 = 1.5\n",
	  "gpupoold.conf:2: [tenant a] session-sm.3 = 1.5: \"1.5\" is not a valid number of "
	  "multiprocessors: use 1 or more (33), a percentage (25%) or all" },
	{ "[tenant a]\nweight = 0\n",
	  "gpupoold.conf:2: [tenant a] weight = 0: \"0\" is not a number from 1 to 1000" },
	{ "[tenant a]\nweight = 1001\n",
	  "gpupoold.conf:2: [tenant a] weight = 1001: \"1001\" is not a number from 1 to 1000" },
	{ "[tenant a]\nlimit = 0%\n", "gpupoold.conf:2: [tenant a] limit = 0%: \"0%\" is not a "
				      "whole percentage from 1 to 100" },
	{ "[tenant a]\nlimit = 12.5%\n", "gpupoold.conf:2: [tenant a] limit = 12.5%: \"12.5%\" is "
					 "not a whole percentage from 1 to 100" },
	{ "[tenant a]\nlimit = 1000000000%\n",
	  "gpupoold.conf:2: [tenant a] limit = 1000000000%: \"1000000000%\" is not a whole "
	  "percentage from 1 to 100" },
	{ "[tenant a]\ntime-share = 101\n", "gpupoold.conf:2: [tenant a] time-share = 101: \"101\" "
					    "is not a whole percentage from 0 to 100" },
};

/* How its sessions are treated. */
static const struct refusal tenant_terms[] = {
	{ "[tenant a]\npriority = urgent\n", "gpupoold.conf:2: [tenant a] priority = urgent: "
					     "\"urgent\" is not one of normal, low, high" },
	{ "[tenant a]\nbandwidth = fast\n",
	  "gpupoold.conf:2: [tenant a] bandwidth = fast: \"fast\" is not a valid bandwidth: use "
	  "bytes per second from 64K (500M), or unlimited" },
	{ "[tenant a]\nbandwidth = 10\n",
	  "gpupoold.conf:2: [tenant a] bandwidth = 10: \"10\" is not a valid bandwidth: use bytes "
	  "per second from 64K (500M), or unlimited" },
	{ "[tenant a]\nsessions = -1\n",
	  "gpupoold.conf:2: [tenant a] sessions = -1: \"-1\" is neither a number from 0 to "
	  "4096 nor unlimited" },
	{ "[tenant a]\nisolation = Process\n",
	  "gpupoold.conf:2: [tenant a] isolation = Process: \"Process\" is not one of shared, "
	  "tenant, session, shared-only" },
	{ "[tenant a]\ndevices = 0,32\n", "gpupoold.conf:2: [tenant a] devices = 0,32: \"32\" is "
					  "not a device from 0 to 31 (a list is 0,1; or all)" },
};

/* Whose sessions are its. */
static const struct refusal tenant_members[] = {
	{ "[tenant a]\nusers = alice,,bob\n",
	  "gpupoold.conf:2: [tenant a] users = alice,,bob: \"\" is not a valid user name (1 to 63 "
	  "characters, no blanks; a list is alice,bob)" },
	{ "[tenant a]\nusers = *\n",
	  "gpupoold.conf:2: [tenant a] users = *: \"*\" is not a valid user name (1 to 63 "
	  "characters, no blanks; a list is alice,bob)" },
	{ "[tenant a]\nusers = alice bob\n",
	  "gpupoold.conf:2: [tenant a] users = alice bob: \"alice bob\" is not a valid user name "
	  "(1 to 63 characters, no blanks; a list is alice,bob)" },
	{ "[tenant a]\naddresses = gpunode\n",
	  "gpupoold.conf:2: [tenant a] addresses = gpunode: \"gpunode\" is not a valid address "
	  "(127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8)" },
	{ "[tenant a]\naddresses = 1111:2222:3333:4444:5555:6666:7777:8888:9999:0000\n",
	  "gpupoold.conf:2: [tenant a] addresses = "
	  "1111:2222:3333:4444:5555:6666:7777:8888:9999:0000: "
	  "\"1111:2222:3333:4444:5555:6666:7777:8888:9999:0000\" is not a valid address "
	  "(127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8)" },
	{ "[tenant a]\naddresses = 10.0.0.0/33\n",
	  "gpupoold.conf:2: [tenant a] addresses = 10.0.0.0/33: \"10.0.0.0/33\" is not a valid "
	  "address (127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8)" },
	{ "[tenant a]\naddresses = 10.0.0.1/8\n",
	  "gpupoold.conf:2: [tenant a] addresses = 10.0.0.1/8: \"10.0.0.1/8\" has bits set beyond "
	  "its prefix length (10.0.0.0/8, not 10.0.0.1/8)" },
	{ "[tenant a]\naddresses = ::ffff:10.0.0.0/104\n",
	  "gpupoold.conf:2: [tenant a] addresses = ::ffff:10.0.0.0/104: "
	  "\"::ffff:10.0.0.0/104\" is an IPv4 address in the form of IPv6 (as IPv4: "
	  "10.0.0.0/8)" },
	{ "[tenant a]\ncertificate = x\n[tenant b]\ncertificate = y,\n x\nweight = 7\n",
	  "gpupoold.conf:3: [tenant b]: the certificate \"x\" is that of tenant a "
	  "already (line 1)" },
	{ "[tenant b]\ncertificate = x\n[tenant default]\ncertificate = x\n",
	  "gpupoold.conf:1: [tenant b]: the certificate \"x\" is that of tenant default already "
	  "(line 3)" },
	{ "[tenant a]\ncertificate = *\n",
	  "gpupoold.conf:2: [tenant a] certificate = *: \"*\" is not a valid certificate name (1 "
	  "to 127 characters; a list is alice,bob)" },
};

/* The names of keys, and what not every tenant or device may have. */
static const struct refusal tenant_names[] = {
	{ "[tenant a]\nmemroy = 16G\n",
	  "gpupoold.conf:2: [tenant a] memroy = 16G: unknown key; did you mean memory? (devices, "
	  "memory, sm, weight, limit, time-share, session-memory, session-sm, priority, bandwidth, "
	  "sessions, isolation, compression, code-memory, pinned-memory, users, certificate, "
	  "addresses)" },
	{ "[tenant a]\nmemory.32 = 16G\n",
	  "gpupoold.conf:2: [tenant a] memory.32 = 16G: \"32\" is not a device from 0 to 31" },
	{ "[tenant a]\nmemory. = 16G\n",
	  "gpupoold.conf:2: [tenant a] memory. = 16G: \"\" is not a device from 0 to 31" },
	{ "[tenant a]\npriority.0 = low\n", "gpupoold.conf:2: [tenant a] priority.0 = low: "
					    "priority cannot differ from device "
					    "to device" },
	{ "[tenant default]\nusers = alice\n",
	  "gpupoold.conf:2: [tenant default] users = alice: not allowed for tenant \"default\", "
	  "which gets all users without a tenant" },
};

UNIT_TEST(wrong_keys_of_a_tenant_are_refused)
{
	ASSERT_ALL_REFUSED(tenant_shares);
	ASSERT_ALL_REFUSED(tenant_terms);
	ASSERT_ALL_REFUSED(tenant_members);
	ASSERT_ALL_REFUSED(tenant_names);
}

UNIT_TEST(what_stands_twice_is_refused_with_the_first_line)
{
	static const struct refusal refusals[] = {
		{ "[tenant a]\nweight = 1\n# again\nweight = 1\n",
		  "gpupoold.conf:4: [tenant a] weight = 1: duplicate of line 2" },
		{ "[tenant a]\nmemory.1 = 4G\nmemory = 4G\nmemory.01 = 4G\n",
		  "gpupoold.conf:4: [tenant a] memory.01 = 4G: duplicate of line 2" },
		{ "[tenant a]\n[tenant b]\n[tenant a]\n",
		  "gpupoold.conf:3: [tenant a]: duplicate of line 1" },
		{ "[tenant default]\n[tenant default]\n",
		  "gpupoold.conf:2: [tenant default]: duplicate of line 1" },
		{ "[daemon]\n[daemon]\n", "gpupoold.conf:2: [daemon]: duplicate of line 1" },
		{ "[tenant a]\nusers = x\nusers = y\n",
		  "gpupoold.conf:3: [tenant a] users = y: duplicate of line 2" },
	};
	struct gpd_config *config = parsed("[tenant a]\nweight = 1\n[tenant b]\nweight = 1\n"
					   "[tenant A]\nweight = 1\n");

	assert_int_equal(config->tenant_count, 4);
	gpd_config_free(config);
	ASSERT_ALL_REFUSED(refusals);
}

UNIT_TEST(lines_that_are_nothing_are_refused)
{
	static const struct refusal refusals[] = {
		{ "weight = 3\n", "gpupoold.conf:1: weight = 3: before the first section "
				  "([daemon], [device N] or [tenant NAME])" },
		{ "[tenant a]\nweight\n",
		  "gpupoold.conf:2: \"weight\" is neither KEY = VALUE nor [SECTION]" },
		{ "[tenant a]\nweight ; 3\nmemory = 12Q\n",
		  "gpupoold.conf:2: \"weight\" is neither KEY = VALUE nor [SECTION]" },
		{ "[tenant a\n", "gpupoold.conf:1: [tenant a: missing ]" },
		{ "[tenant a] weight = 3\n", "gpupoold.conf:1: [tenant a]: \"weight = 3\" after "
					     "the section title: put it on its own line" },
		{ "[tenent a]\n", "gpupoold.conf:1: [tenent a]: unknown section ([daemon], [device "
				  "N] or [tenant NAME])" },
		{ "[]\n",
		  "gpupoold.conf:1: []: unknown section ([daemon], [device N] or [tenant NAME])" },
		{ "[daemon 1]\n", "gpupoold.conf:1: [daemon 1]: unknown section ([daemon], [device "
				  "N] or [tenant NAME])" },
		{ "[tenant]\n", "gpupoold.conf:1: [tenant]: \"\" is not a valid name (1 to 63 of "
				"A-Z a-z 0-9 . _ -)" },
		{ "[tenant a b]\n", "gpupoold.conf:1: [tenant a b]: \"a b\" is not a valid name (1 "
				    "to 63 of A-Z a-z 0-9 . _ -)" },
		{ "[tenant a/b]\n", "gpupoold.conf:1: [tenant a/b]: \"a/b\" is not a valid name (1 "
				    "to 63 of A-Z a-z 0-9 . _ -)" },
		{ "[tenant a]\nweight = 3\001\n", "gpupoold.conf:2: [tenant a] weight = 3?: \"3?\" "
						  "is not a number from 1 to 1000" },
	};

	ASSERT_ALL_REFUSED(refusals);
}

UNIT_TEST(line_that_is_too_long_is_refused_not_cut)
{
	char text[512] = "[tenant a]\nusers = a", error[GPD_CONFIG_ERROR_MAX] = "";
	struct gpd_config *config;

	memset(text + strlen(text), 'a', 400);
	assert_int_equal(gpd_config_parse(text, "c", &config, error, sizeof(error)), GP_E_INVALID);
	assert_non_null(strstr(error, "c:2: longer than "));
	assert_non_null(
		strstr(error, " bytes (a list may continue on the next line after a comma)"));
}

UNIT_TEST(contradictions_are_refused)
{
	static const struct refusal refusals[] = {
		{ "[tenant a]\nmemory = 4G\nsession-memory = 8G\n",
		  "gpupoold.conf:1: [tenant a]: session-memory: one session may have more than "
		  "the whole tenant, of device 0" },
		{ "[daemon]\n[tenant a]\nsession-memory = 8G ; each\nmemory = 16G\nmemory.1 = 4G\n",
		  "gpupoold.conf:2: [tenant a]: session-memory: one session may have more than "
		  "the whole tenant, of device 1" },
		{ "[tenant a]\nmemory = 40%\nsession-memory = 40.01%\n",
		  "gpupoold.conf:1: [tenant a]: session-memory: one session may have more "
		  "than the whole tenant, of device 0" },
		{ "[tenant a]\nsm = 32\nsession-sm = 33\n",
		  "gpupoold.conf:1: [tenant a]: session-sm: one session may have more than the "
		  "whole tenant, of device 0" },
		{ "[tenant a]\nsm = 32%\nsession-sm = 33%\n",
		  "gpupoold.conf:1: [tenant a]: session-sm: one session may have more than the "
		  "whole tenant, of device 0" },
		{ "[tenant a]\nlimit = 30\ntime-share = 40\n",
		  "gpupoold.conf:1: [tenant a]: time-share: it is more than the limit, of device "
		  "0" },
		{ "[tenant a]\ndevices = 0\nmemory.1 = 4G\n",
		  "gpupoold.conf:3: [tenant a] memory.1: device 1 is not in the tenant's device "
		  "list" },
	};

	ASSERT_ALL_REFUSED(refusals);
}

UNIT_TEST(what_only_looks_contradictory_is_taken)
{
	/* If the size of a device is unknown, 8G may be less than 10%. */
	gpd_config_free(parsed("[tenant a]\nmemory = 10%\nsession-memory = 8G\n"));
	gpd_config_free(parsed("[tenant a]\nmemory = 4G\nsession-memory = all\n"));
	gpd_config_free(parsed("[tenant a]\nmemory = 4G\nsession-memory = 4G\n"));
	gpd_config_free(parsed("[tenant a]\nsession-memory = 4G\n"));
	gpd_config_free(parsed("[tenant a]\nsession-sm = 33\n"));
	gpd_config_free(parsed("[tenant a]\nsm = 16\nsession-sm = all\n"));
	gpd_config_free(parsed("[tenant a]\nsm = 10%\nsession-sm = 33\n"));
	gpd_config_free(parsed("[tenant a]\nsession-sm = 33%\n"));
}

UNIT_TEST(time_shares_of_a_device_with_fixed_parts_are_at_most_the_whole)
{
	static const struct refusal refusals[] = {
		{ "[tenant a]\ntime-share = 50\n[tenant b]\ntime-share = 60\n"
		  "[device *]\npolicy = fixed\n",
		  "gpupoold.conf:3: [tenant b]: with its own the time-shares of device "
		  "0, "
		  "whose policy is fixed, are 110%, more than 100%" },
		{ "[device 3]\npolicy = fixed\n[tenant a]\ntime-share = 20\ntime-share.3 = 70\n"
		  "[tenant b]\ntime-share = 31\n",
		  "gpupoold.conf:6: [tenant b]: with its own the time-shares of device "
		  "3, "
		  "whose policy is fixed, are 101%, more than 100%" },
		{ "[device " UUID "]\npolicy = fixed\n[tenant a]\ntime-share = 99\n"
		  "[tenant b]\ntime-share = 2\n",
		  "gpupoold.conf:5: [tenant b]: with its own the time-shares of device "
		  "0, "
		  "whose policy is fixed, are 101%, more than 100%" },
	};

	ASSERT_ALL_REFUSED(refusals);
	gpd_config_free(parsed("[device *]\npolicy = fixed\n[tenant a]\ntime-share = 50\n"
			       "[tenant b]\ntime-share = 50\n"));
	gpd_config_free(parsed("[tenant a]\ntime-share = 60\n[tenant b]\ntime-share = 60\n"));
	gpd_config_free(parsed("[device *]\npolicy = fixed\n[device 0]\npolicy = equal\n"
			       "[tenant a]\ntime-share.0 = 60\n[tenant b]\ntime-share.0 = 60\n"));
	gpd_config_free(parsed("[device *]\npolicy = fixed\n[tenant a]\ndevices = 0\n"
			       "time-share = 60\n[tenant b]\ndevices = 1\ntime-share = 60\n"));
}

UNIT_TEST(there_are_at_most_255_tenants)
{
	char text[256 * 16] = "";
	size_t length = 0;

	for (int i = 1; i < GPD_CONFIG_TENANTS; i++)
		length +=
			(size_t)snprintf(text + length, sizeof(text) - length, "[tenant t%d]\n", i);
	gpd_config_free(parsed(text));
	snprintf(text + length, sizeof(text) - length, "[tenant default]\n");
	gpd_config_free(parsed(text));
	snprintf(text + length, sizeof(text) - length, "[tenant last]\n");
	assert_refused(text, "gpupoold.conf:255: [tenant last]: more than 255 tenants, \"default\" "
			     "included");
}

UNIT_TEST(there_are_at_most_128_sections_of_devices)
{
	char text[130 * 64] = "";
	size_t length = 0;

	for (int i = 0; i < 128; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "[device GPU-%08x-0000-0000-0000-000000000000]\n", i);
	gpd_config_free(parsed(text));
	snprintf(text + length, sizeof(text) - length, "[device 0]\n");
	assert_refused(text, "gpupoold.conf:129: [device 0]: more than 128 sections of devices");
}

UNIT_TEST_MAIN(NULL, NULL)
