/* SPDX-License-Identifier: Apache-2.0 */
/* devices: lists the devices of a pool, the user's quota, and the user's sessions. */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/launch_env.h"
#include "cli/probe.h"
#include "ctl/table.h"
#include "protocol/admin_messages.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST 'L'
#define JSON 'j'
#define DEVICES_MAX 64
/* Time between the two queries from which the utilization is computed. */
#define SAMPLE_NS UINT64_C(500000000)

/* A device, in the order in which programs see them. */
struct device {
	const struct cli_daemon *daemon;
	const Gpupool__AccountDevice *info;
	uint64_t before_ns; /* GPU time at the first query */
	uint32_t busy;      /* hundredths of a percent */
};

struct view {
	struct cli_probe probe;
	struct device devices[DEVICES_MAX];
	int device_count;
	bool incomplete; /* a daemon or device of the pool is missing; reported on standard error */
};

static const Gpupool__AccountDevice *
find_device(const struct cli_daemon *daemon, int ordinal)
{
	for (size_t i = 0; daemon->account && i < daemon->account->n_devices; i++) {
		if (daemon->account->devices[i]->ordinal == ordinal)
			return daemon->account->devices[i];
	}
	return NULL;
}

static void
add_device(struct view *view, const struct cli_daemon *daemon, const Gpupool__AccountDevice *info)
{
	if (view->device_count < DEVICES_MAX)
		view->devices[view->device_count++] = (struct device){
			.daemon = daemon,
			.info = info,
			.before_ns = info->gpu_ns,
		};
}

/* Lists the devices of the daemons that have replied, in the order of REMOTE_GPU, as the client
 * library does. */
static void
list_devices(struct view *view)
{
	for (int i = 0; i < view->probe.url_count; i++) {
		const struct gp_url *url = &view->probe.urls[i];
		const struct cli_daemon *daemon =
			&view->probe.daemons[cli_probe_find(&view->probe, url)];
		const Gpupool__AccountDevice *info;
		char tenant[80];

		if (!daemon->account)
			continue;
		if (url->device == GP_URL_ANY_DEVICE) {
			for (size_t k = 0; k < daemon->account->n_devices; k++)
				add_device(view, daemon, daemon->account->devices[k]);
			continue;
		}
		info = find_device(daemon, url->device);
		if (info) {
			add_device(view, daemon, info);
			continue;
		}
		(void)cli_fail("%s has no device %d, or none for tenant %s", daemon->text,
			       url->device,
			       cli_probe_text(daemon->account->tenant, tenant, sizeof(tenant)));
		view->incomplete = true;
	}
}

/* Queries all daemons; in a later call only those that have replied before. Returns 0 if at least
 * one replies. */
static int
daemons_query(struct view *view)
{
	bool again = view->probe.when_ns != 0, one = false;

	for (int i = 0; i < view->probe.daemon_count; i++) {
		struct cli_daemon *daemon = &view->probe.daemons[i];

		if (again && !daemon->account)
			continue;
		if (cli_probe_query(daemon) == 0) {
			one = true;
			continue;
		}
		(void)cli_fail("%s (run \"gpupool check\")", daemon->error);
		view->incomplete = true;
	}
	view->probe.when_ns = gp_now_ns();
	return one ? 0 : CLI_FAILED;
}

/* Queries once more after SAMPLE_NS. Devices that are no longer reported are left out. */
static int
usage_measure(struct view *view)
{
	uint64_t first_ns = view->probe.when_ns;
	int ordinals[DEVICES_MAX], count = 0, r;

	for (int i = 0; i < view->device_count; i++)
		ordinals[i] = view->devices[i].info->ordinal;
	gp_sleep_ns(SAMPLE_NS);
	r = daemons_query(view);
	for (int i = 0; i < view->device_count; i++) {
		struct device device = view->devices[i];
		uint64_t passed_ns = view->probe.when_ns - first_ns, worked_ns;

		device.info = find_device(device.daemon, ordinals[i]);
		if (!device.info)
			continue;
		worked_ns = device.info->gpu_ns > device.before_ns
				    ? device.info->gpu_ns - device.before_ns
				    : 0;
		if (worked_ns > passed_ns)
			worked_ns = passed_ns;
		device.busy = passed_ns ? (uint32_t)(worked_ns * 10000 / passed_ns) : 0;
		view->devices[count++] = device;
	}
	view->device_count = count;
	return r;
}

/* Returns the memory quota, at most the device's memory. */
static uint64_t
device_get_quota(const Gpupool__AccountDevice *device)
{
	return device->quota_memory < device->memory ? device->quota_memory : device->memory;
}

static void
print_list(const struct view *view)
{
	char name[256], uuid[GP_UUID_TEXT_SIZE];

	for (int i = 0; i < view->device_count; i++) {
		gp_admin_format_uuid(&view->devices[i].info->uuid, uuid);
		printf("GPU %d: %s (UUID: %s)\n", i,
		       cli_probe_text(view->devices[i].info->name, name, sizeof(name)), uuid);
	}
}

static void
print_devices(const struct view *view)
{
	static const struct ctl_column columns[] = {
		{ "GPU", "gpu", CTL_NUMBER },         { "NAME", "name", CTL_TEXT },
		{ "BUSY", "busy", CTL_PERCENT },      { "SESSIONS", "sessions", CTL_NUMBER },
		{ "USED", "memory_used", CTL_BYTES }, { "MEMORY", "memory", CTL_BYTES },
		{ "MINE", "quota_used", CTL_BYTES },  { "MY LIMIT", "quota", CTL_BYTES },
		{ "MY SMS", "quota_sm", CTL_NUMBER },
	};
	struct ctl_table table;
	char name[256];

	ctl_table_init(&table, columns, COUNT(columns));
	for (int i = 0; i < view->device_count; i++) {
		const Gpupool__AccountDevice *device = view->devices[i].info;

		ctl_table_number(&table, (uint64_t)i);
		ctl_table_text(&table, cli_probe_text(device->name, name, sizeof(name)));
		ctl_table_number(&table, view->devices[i].busy);
		ctl_table_number(&table, device->sessions);
		ctl_table_number(&table, device->memory_used);
		ctl_table_number(&table, device->memory);
		ctl_table_number(&table, device->quota_used);
		ctl_table_number(&table, device_get_quota(device));
		ctl_table_number(&table,
				 device->quota_sm ? device->quota_sm : device->multiprocessors);
	}
	ctl_table_print(&table, CTL_FORMAT_TABLE, stdout);
	ctl_table_fini(&table);
}

static void
print_sessions(const struct view *view)
{
	static const struct ctl_column columns[] = {
		{ "MY SESSION", "session", CTL_NUMBER },
		{ "PROGRAM", "program", CTL_TEXT },
		{ "PID", "pid", CTL_NUMBER },
		{ "USER", "user", CTL_TEXT },
		{ "HOST", "host", CTL_TEXT },
		{ "AGE", "started", CTL_SINCE },
		{ "MEMORY", "memory", CTL_BYTES },
		{ "GPU TIME", "gpu_time", CTL_NS },
	};
	struct ctl_table table;
	char text[256];
	size_t rows = 0;

	ctl_table_init(&table, columns, COUNT(columns));
	for (int i = 0; i < view->probe.daemon_count; i++) {
		const Gpupool__Account *account = view->probe.daemons[i].account;

		for (size_t k = 0; account && k < account->n_own; k++, rows++) {
			const Gpupool__AccountSession *session = account->own[k];

			ctl_table_number(&table, session->id);
			ctl_table_text(&table,
				       cli_probe_text(session->program, text, sizeof(text)));
			ctl_table_number(&table, session->pid);
			ctl_table_text(&table, cli_probe_text(session->user, text, sizeof(text)));
			ctl_table_text(&table, cli_probe_text(session->host, text, sizeof(text)));
			ctl_table_number(&table, (uint64_t)session->started_s);
			ctl_table_number(&table, session->memory);
			ctl_table_number(&table, session->gpu_ns);
		}
	}
	if (rows) {
		printf("\n");
		ctl_table_print(&table, CTL_FORMAT_TABLE, stdout);
	}
	ctl_table_fini(&table);
}

static void
print_tenants(const struct view *view)
{
	for (int i = 0; i < view->probe.daemon_count; i++) {
		const struct cli_daemon *daemon = &view->probe.daemons[i];
		const Gpupool__Account *account = daemon->account;
		char tenant[80], full[512], most[32] = "";

		if (!account)
			continue;
		if (account->sessions_max)
			(void)snprintf(most, sizeof(most), " of at most %u", account->sessions_max);
		printf("%s: tenant %s, %u session%s%s; %u of %u of the daemon's session slots in "
		       "use\n",
		       daemon->text, cli_probe_text(account->tenant, tenant, sizeof(tenant)),
		       account->sessions, account->sessions == 1 ? "" : "s", most,
		       account->sessions_all, account->sessions_all_max);
		if (*account->full)
			printf("%s: new sessions are refused: %s\n", daemon->text,
			       cli_probe_text(account->full, full, sizeof(full)));
	}
	printf("\n");
}

/* JSON. */

static void *
require_memory(void *object)
{
	if (object)
		return object;
	(void)cli_fail("out of memory");
	exit(CLI_FAILED);
}

/* cJSON stores numbers as doubles, which cannot represent all 64-bit values. */
static void
put_number(cJSON *object, const char *name, uint64_t number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	require_memory(cJSON_AddRawToObject(object, name, text));
}

static void
put_seconds(cJSON *object, const char *name, uint64_t ns)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		       (unsigned long long)(ns % 1000000000));
	require_memory(cJSON_AddRawToObject(object, name, text));
}

static void
put_text(cJSON *object, const char *name, const char *text)
{
	char printable[512];

	require_memory(cJSON_AddStringToObject(object, name,
					       cli_probe_text(text, printable, sizeof(printable))));
}

static cJSON *
new_row(cJSON *list)
{
	cJSON *row = require_memory(cJSON_CreateObject());

	cJSON_AddItemToArray(list, row);
	return row;
}

static void
put_daemon(cJSON *row, const struct cli_daemon *daemon)
{
	const Gpupool__Account *account = daemon->account;

	put_text(row, "url", daemon->text);
	if (!account) {
		put_text(row, "error", daemon->error);
		return;
	}
	require_memory(cJSON_AddNullToObject(row, "error"));
	put_text(row, "version", account->server_version);
	put_text(row, "tenant", account->tenant);
	put_text(row, "credentials", account->credentials);
	if (account->until_s)
		put_number(row, "expires", (uint64_t)account->until_s);
	else
		require_memory(cJSON_AddNullToObject(row, "expires"));
	put_number(row, "sessions", account->sessions);
	if (account->sessions_max)
		put_number(row, "sessions_max", account->sessions_max);
	else
		require_memory(cJSON_AddNullToObject(row, "sessions_max"));
	put_number(row, "sessions_all", account->sessions_all);
	put_number(row, "sessions_all_max", account->sessions_all_max);
	put_text(row, "full", account->full);
}

static void
put_device(cJSON *row, const struct device *device, int index)
{
	const Gpupool__AccountDevice *info = device->info;
	char text[64];

	put_number(row, "gpu", (uint64_t)index);
	put_text(row, "url", device->daemon->text);
	put_number(row, "ordinal", (uint64_t)info->ordinal);
	put_text(row, "name", info->name);
	gp_admin_format_uuid(&info->uuid, text);
	put_text(row, "uuid", text);
	(void)snprintf(text, sizeof(text), "%u.%02u", device->busy / 100, device->busy % 100);
	require_memory(cJSON_AddRawToObject(row, "busy_percent", text));
	put_number(row, "sessions", info->sessions);
	put_number(row, "memory", info->memory);
	put_number(row, "memory_used", info->memory_used);
	put_number(row, "multiprocessors", info->multiprocessors);
	put_number(row, "quota", device_get_quota(info));
	put_number(row, "quota_used", info->quota_used);
	put_number(row, "quota_multiprocessors",
		   info->quota_sm ? info->quota_sm : info->multiprocessors);
}

static void
put_session(cJSON *row, const struct cli_daemon *daemon, const Gpupool__AccountSession *session)
{
	put_text(row, "url", daemon->text);
	put_number(row, "session", session->id);
	put_text(row, "program", session->program);
	put_number(row, "pid", session->pid);
	put_text(row, "user", session->user);
	put_text(row, "host", session->host);
	put_number(row, "started", (uint64_t)session->started_s);
	put_number(row, "memory", session->memory);
	put_seconds(row, "gpu_seconds", session->gpu_ns);
}

static void
print_json(const struct view *view)
{
	cJSON *all = require_memory(cJSON_CreateObject());
	cJSON *daemons = require_memory(cJSON_AddArrayToObject(all, "daemons"));
	cJSON *devices = require_memory(cJSON_AddArrayToObject(all, "devices"));
	cJSON *sessions = require_memory(cJSON_AddArrayToObject(all, "sessions"));
	char *text;

	for (int i = 0; i < view->probe.daemon_count; i++) {
		const struct cli_daemon *daemon = &view->probe.daemons[i];

		put_daemon(new_row(daemons), daemon);
		for (size_t k = 0; daemon->account && k < daemon->account->n_own; k++)
			put_session(new_row(sessions), daemon, daemon->account->own[k]);
	}
	for (int i = 0; i < view->device_count; i++)
		put_device(new_row(devices), &view->devices[i], i);
	text = require_memory(cJSON_Print(all));
	printf("%s\n", text);
	cJSON_free(text);
	cJSON_Delete(all);
}

static int
view_print(int format, struct view *view)
{
	char error[768];
	int r;

	if (cli_probe_init(&view->probe, error, sizeof(error)))
		return cli_fail("%s", error);
	r = daemons_query(view);
	if (r == 0)
		list_devices(view);
	if (r == 0 && format != LIST)
		r = usage_measure(view);
	/* The JSON output contains the errors of daemons that do not reply. */
	if (format == JSON)
		print_json(view);
	if (r)
		return r;
	if (format == LIST) {
		print_list(view);
	} else if (format != JSON) {
		print_tenants(view);
		print_devices(view);
		print_sessions(view);
	}
	if (!view->incomplete)
		return 0;
	(void)cli_fail("incomplete: a program needs all daemons of the pool");
	return CLI_INCOMPLETE;
}

int
cli_devices(int count, char **argv)
{
	static const struct option options[] = {
		{ "pool", required_argument, NULL, 'p' },
		{ "list", no_argument, NULL, LIST },
		{ "json", no_argument, NULL, JSON },
		{ NULL, 0, NULL, 0 },
	};
	struct cli_launch_options launch_options = { 0 };
	struct cli_launch_env launch_env;
	struct view *view;
	int option, format = 0, r;

	while ((option = cli_option(count, argv, "p:L", options, "")) != -1) {
		if (option == '?')
			return CLI_FAILED;
		if (option == 'p')
			launch_options.pool = optarg;
		else
			format = option;
	}
	if (optind < count)
		return cli_fail("\"%s\": unexpected argument; gpupool devices -p %s shows pool %s",
				argv[optind], argv[optind], argv[optind]);
	r = cli_launch_env_select(&launch_options, &launch_env);
	if (r == 0)
		r = cli_launch_env_apply(&launch_env);
	view = r == 0 ? require_memory(calloc(1, sizeof(*view))) : NULL;
	if (r == 0) {
		r = view_print(format, view);
		cli_probe_free(&view->probe);
	}
	free(view);
	cli_launch_env_free(&launch_env);
	return r;
}
