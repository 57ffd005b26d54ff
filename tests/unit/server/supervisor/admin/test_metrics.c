/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text, and addresses for it. */
#include "server/common/config/config_value.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/admin/metrics_text.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;

static int
forget(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

/* A device, a tenant and a session whose user has this name. */
static void
write_report(const char *user)
{
	uint8_t uuid[16] = { 0xab };
	Gpupool__AdminReport report = GPUPOOL__ADMIN_REPORT__INIT;
	Gpupool__AdminDevice device = GPUPOOL__ADMIN_DEVICE__INIT, *devices = &device;
	Gpupool__AdminTenant tenant = GPUPOOL__ADMIN_TENANT__INIT, *tenants = &tenant;
	Gpupool__AdminSession session = GPUPOOL__ADMIN_SESSION__INIT, *sessions = &session;
	Gpupool__AdminLine line = GPUPOOL__ADMIN_LINE__INIT, *lines = &line;
	Gpupool__AdminCounts counts = GPUPOOL__ADMIN_COUNTS__INIT;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	report.version = (char *)"1.2";
	report.n_devices = report.n_tenants = report.n_sessions = 1;
	report.devices = &devices;
	report.tenants = &tenants;
	report.sessions = &sessions;
	device.uuid = (ProtobufCBinaryData){ sizeof(uuid), uuid };
	device.name = (char *)"G";
	device.memory = ((uint64_t)3 << 20) + 5;
	device.memory_total = 1000;
	device.multiprocessors = 132;
	device.gpu_ns = 12000000034;
	line.memory = 7;
	line.memory_max = UINT64_MAX;
	line.gpu_ns = 5;
	counts.copied_in = 11;
	counts.copied_out = UINT64_MAX;
	counts.waited_ns = 1500000000;
	tenant.name = (char *)"t";
	tenant.counts = &counts;
	tenant.n_lines = 1;
	tenant.lines = &lines;
	session.id = 4;
	session.tenant = (char *)"t";
	session.user = (char *)user;
	session.counts = &counts;
	session.n_lines = 1;
	session.lines = &lines;
	gpd_metrics_write(file, &report);
	assert_int_equal(fclose(file), 0);
}

#define assert_has(line)                                                                           \
	do {                                                                                       \
		if (!strstr(text, line))                                                           \
			fail_msg("\"%s\" is not in \"%s\"", line, text);                           \
	} while (0)

#define DEVICE "gpu=\"0\",UUID=\"GPU-ab000000-0000-0000-0000-000000000000\""

#define TEST(test) UNIT_TEST_WITH(test, NULL, forget)

TEST(samples_stand_below_the_help_and_type_of_their_family)
{
	write_report("u");
	assert_has("# HELP gpupool_build_info The daemon's version; always 1.\n"
		   "# TYPE gpupool_build_info gauge\n"
		   "gpupool_build_info{version=\"1.2\"} 1\n");
	assert_has("# TYPE gpupool_tenant_copied_bytes_total counter\n"
		   "gpupool_tenant_copied_bytes_total{tenant=\"t\",direction=\"in\"} 11\n"
		   "gpupool_tenant_copied_bytes_total{tenant=\"t\",direction=\"out\"} "
		   "18446744073709551615\n");
}

TEST(times_are_seconds_to_the_nanosecond)
{
	write_report("u");
	assert_has("gpupool_device_gpu_seconds_total{" DEVICE ",modelName=\"G\"} 12.000000034\n");
	assert_has("gpupool_tenant_gpu_seconds_total{" DEVICE ",tenant=\"t\"} 0.000000005\n");
	assert_has("gpupool_tenant_wait_seconds_total{tenant=\"t\"} 1.500000000\n");
}

TEST(no_limit_is_the_devices)
{
	write_report("u");
	assert_has("gpupool_tenant_memory_limit_bytes{" DEVICE ",tenant=\"t\"} 1000\n");
	assert_has("gpupool_session_multiprocessors_assigned{" DEVICE ",session=\"4\",");
	assert_has("program=\"\"} 132\n");
}

TEST(other_tools_names_have_their_labels_and_units)
{
	write_report("u");
	assert_has("DCGM_FI_DEV_FB_USED{" DEVICE ",modelName=\"G\"} 3\n");
	assert_has("hami_vgpu_memory_used_bytes{vdevice_index=\"0\","
		   "device_uuid=\"GPU-ab000000-0000-0000-0000-000000000000\",tenant=\"t\"} 7\n");
}

TEST(labels_are_escaped)
{
	write_report("a\"b\\c\nd");
	assert_has(",user=\"a\\\"b\\\\c\\nd\",");
}

TEST(addresses_are_taken_apart)
{
	char host[GPD_METRICS_HOST_MAX];
	uint16_t port;

	assert_null(gpd_value_parse_metrics("127.0.0.1:9400", 0, host, sizeof(host), &port));
	assert_string_equal(host, "127.0.0.1");
	assert_int_equal(port, 9400);
	assert_null(gpd_value_parse_metrics("[::1]:80", 0, host, sizeof(host), &port));
	assert_string_equal(host, "::1");
	assert_null(gpd_value_parse_metrics("9400", 0, host, sizeof(host), &port));
	assert_string_equal(host, "127.0.0.1");
	assert_int_equal(port, 9400);
	assert_null(gpd_value_parse_metrics("localhost:0", 0, host, sizeof(host), &port));
	assert_string_equal(host, "localhost");
	assert_int_equal(port, 0);
	assert_non_null(gpd_value_parse_metrics("localhost:0", 1, host, sizeof(host), &port));
	assert_null(gpd_value_parse_metrics("off", 0, host, sizeof(host), &port));
	assert_string_equal(host, "");
	assert_non_null(gpd_value_parse_metrics("", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics(":80", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics(":0", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics("65536", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics("host:", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics("::1:0", 0, host, sizeof(host), &port));
	assert_non_null(gpd_value_parse_metrics("host:-1", 0, host, sizeof(host), &port));
}

TEST(only_loopback_addresses_need_no_permission)
{
	struct gpd_report_source source = { 0 };
	struct gpd_metrics metrics;
	char error[256];

	assert_int_equal(
		gpd_metrics_open(&metrics, &source, "0.0.0.0", 0, false, error, sizeof(error)),
		-EACCES);
	assert_non_null(strstr(error, "--insecure"));
	assert_int_equal(gpd_metrics_open(&metrics, &source, "*", 0, false, error, sizeof(error)),
			 -EACCES);
	assert_int_equal(
		gpd_metrics_open(&metrics, &source, "127.0.0.2", 0, false, error, sizeof(error)),
		0);
	assert_int_equal(strncmp(metrics.url, "http://127.0.0.2:", 17), 0);
	gpd_metrics_close(&metrics);
	gpd_metrics_close(&metrics);
}

UNIT_TEST_MAIN(NULL, NULL)
