/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/command.h"
#include "ctl/value.h"

#include <string.h>

static const char *const policies[] = { "none", "best-effort", "equal", "fixed" };
static const char *const states[] = { "opening", "running", "ending" };

static const char *
get_name(const char *const *names, size_t count, uint32_t index)
{
	return index < count ? names[index] : "?";
}

bool
ctl_parse_session(const char *text, uint64_t *session_p)
{
	if (ctl_parse_number(text, 1, UINT64_MAX - 1, session_p))
		return true;
	ctl_fail("\"%s\" is not a session ID: see gpupoolctl session list", text);
	return false;
}

int
ctl_usage_error(const char *usage)
{
	return ctl_fail("usage: gpupoolctl %s", usage);
}

/* Status. */

static void
driver_text(const Gpupool__AdminReport *report, char *text, size_t size)
{
	uint32_t version = report->driver_version;

	snprintf(text, size, "CUDA %u.%u%s", version / 1000, version % 1000 / 10,
		 report->software ? ", software device" : "");
}

/* One of the reserve is enough. */
static bool
has_serving_worker(const Gpupool__AdminReport *report)
{
	for (size_t i = 0; i < report->n_workers; i++) {
		if (report->workers[i]->state == GPUPOOL__ADMIN_WORKER__STATE__SERVING)
			return true;
	}
	return false;
}

static uint64_t
time_or_none(uint64_t time_s)
{
	return time_s ? time_s : UINT64_MAX;
}

/* The devices that are sick, with the reasons. Returns false if there are none. */
static bool
sick_text(const Gpupool__AdminReport *report, char *text, size_t size)
{
	*text = '\0';
	for (size_t i = 0; i < report->n_devices && strlen(text) + 1 < size; i++) {
		const Gpupool__AdminDevice *device = report->devices[i];

		if (device->sick)
			snprintf(text + strlen(text), size - strlen(text), "%s%u (%s)",
				 *text ? ", " : "", device->ordinal, device->reason);
	}
	return *text != '\0';
}

/* Addresses, files and expiry dates. */
static void
add_locations(struct ctl_table *table, const Gpupool__AdminReport *report)
{
	char addresses[2048] = "", sick[4096];

	for (size_t i = 0; i < report->n_addresses; i++)
		snprintf(addresses + strlen(addresses), sizeof(addresses) - strlen(addresses),
			 "%s%s", i ? ", " : "", report->addresses[i]);
	ctl_table_text(table, addresses);
	ctl_table_text(table, report->config[0] ? report->config : "none (no quotas)");
	ctl_table_text(table, report->user);
	ctl_table_text(table, report->metrics[0] ? report->metrics : NULL);
	ctl_table_text(table, report->usage[0] ? report->usage : NULL);
	ctl_table_number(table, time_or_none(report->certificate_until_s));
	ctl_table_number(table, time_or_none(report->crl_until_s));
	ctl_table_number(table, report->n_tokens ? report->tokens[0]->until_s : UINT64_MAX);
	ctl_table_number(table, report->workers_lost);
	ctl_table_number(table, report->workers_hanging);
	ctl_table_number(table, report->n_quarantines);
	ctl_table_text(table, sick_text(report, sick, sizeof(sick)) ? sick : NULL);
}

static void
add_status(struct ctl_table *table, const Gpupool__AdminReport *report)
{
	uint64_t memory = 0, total = 0, gpu_ns = 0, ever = 0, context_memory = 0, contexts = 0;
	char driver[64];

	for (size_t i = 0; i < report->n_devices; i++) {
		memory += report->devices[i]->memory;
		total += report->devices[i]->memory_total;
		gpu_ns += report->devices[i]->gpu_ns;
		contexts += report->devices[i]->contexts;
		context_memory += report->devices[i]->context_memory;
	}
	for (size_t i = 0; i < report->n_tenants; i++)
		ever += report->tenants[i]->sessions_total;
	driver_text(report, driver, sizeof(driver));
	ctl_table_text(table, report->version);
	ctl_table_text(table, report->draining             ? "draining"
			      : has_serving_worker(report) ? "serving"
							   : "waiting for a worker");
	ctl_table_number(table, report->pid);
	ctl_table_number(table, report->started_s);
	ctl_table_text(table, driver);
	ctl_table_number(table, report->n_workers);
	ctl_table_number(table, report->workers_ready);
	ctl_table_number(table, report->n_devices);
	ctl_table_number(table, report->n_sessions);
	ctl_table_number(table, report->sessions_max);
	ctl_table_number(table, report->waiting);
	ctl_table_number(table, ever);
	ctl_table_number(table, memory);
	ctl_table_number(table, total);
	ctl_table_number(table, contexts);
	ctl_table_number(table, context_memory);
	ctl_table_number(table, gpu_ns);
	add_locations(table, report);
}

int
ctl_status(const struct ctl *ctl, int count, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "version", "version", CTL_TEXT },
		{ "state", "state", CTL_TEXT },
		{ "process", "pid", CTL_NUMBER },
		{ "uptime", "started", CTL_SINCE },
		{ "driver", "driver", CTL_TEXT },
		{ "workers", "workers", CTL_NUMBER },
		{ "workers in reserve", "workers_ready", CTL_NUMBER },
		{ "devices", "devices", CTL_NUMBER },
		{ "sessions", "sessions", CTL_NUMBER },
		{ "session limit", "sessions_max", CTL_NUMBER },
		{ "clients waiting", "clients_waiting", CTL_NUMBER },
		{ "sessions served", "sessions_total", CTL_NUMBER },
		{ "memory in use", "memory_bytes", CTL_BYTES },
		{ "memory", "memory_total_bytes", CTL_BYTES },
		{ "contexts", "contexts", CTL_NUMBER },
		{ "memory of contexts", "context_memory_bytes", CTL_BYTES },
		{ "GPU time", "gpu_seconds", CTL_NS },
		{ "addresses", "addresses", CTL_TEXT },
		{ "configuration", "configuration", CTL_TEXT },
		{ "user", "user", CTL_TEXT },
		{ "metrics", "metrics", CTL_TEXT },
		{ "usage records", "usage", CTL_TEXT },
		{ "certificate expires", "certificate_expires", CTL_DATE },
		{ "CRL expires", "crl_expires", CTL_DATE },
		{ "next token expires", "next_token_expires", CTL_DATE },
		{ "workers lost", "workers_lost", CTL_NUMBER },
		{ "workers hung", "workers_hanging", CTL_NUMBER },
		{ "programs in quarantine", "quarantined_programs", CTL_NUMBER },
		{ "sick devices", "sick_devices", CTL_TEXT },
	};
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count)
		return ctl_usage_error("status");
	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	table.has_old_keys = true;
	add_status(&table, reply->report);
	ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

/* Devices. */

/* Returns the usage of the session that has this part of a device; NULL: none. */
static const Gpupool__AdminLine *
find_unit_line(const Gpupool__AdminReport *report, const Gpupool__AdminUnit *unit)
{
	for (size_t i = 0; unit->session && i < report->n_sessions; i++) {
		const Gpupool__AdminSession *s = report->sessions[i];

		for (size_t l = 0; s->id == unit->session && l < s->n_lines; l++) {
			if (s->lines[l]->device == unit->device)
				return s->lines[l];
		}
	}
	return NULL;
}

static void
add_use(struct ctl_table *table, const Gpupool__AdminReport *report, const Gpupool__AdminUnit *unit)
{
	const Gpupool__AdminDevice *device = report->devices[unit->device];
	const Gpupool__AdminLine *line = find_unit_line(report, unit);
	uint32_t sms = line && line->sm_assigned ? line->sm_assigned : unit->multiprocessors;
	bool whole = unit->parts == 1;

	ctl_table_number(table, whole ? device->memory : line ? line->memory : 0);
	ctl_table_number(table, unit->memory_total);
	ctl_table_number(table, sms);
	ctl_table_text(table, get_name(policies, COUNT(policies), device->policy));
	ctl_table_number(table, whole ? device->sessions : line != NULL);
	ctl_table_number(table, whole ? device->gpu_ns : line ? line->gpu_ns : 0);
}

static void
add_device(struct ctl_table *table, const Gpupool__AdminReport *report, uint64_t number,
	   const Gpupool__AdminUnit *unit)
{
	const Gpupool__AdminDevice *device = report->devices[unit->device];
	char uuid[GP_UUID_TEXT_SIZE], part[32];

	gp_admin_format_uuid(&device->uuid, uuid);
	snprintf(part, sizeof(part), "%u/%u", unit->part + 1, unit->parts);
	ctl_table_number(table, number);
	ctl_table_number(table, device->ordinal);
	ctl_table_text(table, unit->parts > 1 ? part : NULL);
	ctl_table_text(table, device->name);
	add_use(table, report, unit);
	ctl_table_text(table, uuid);
	ctl_table_text(table, device->sick ? "sick" : "ok");
	ctl_table_text(table, device->sick ? device->reason : NULL);
	/* Those of a device are in the line of its first part. */
	ctl_table_number(table, unit->part ? 0 : device->contexts);
	ctl_table_number(table, unit->part ? 0 : device->context_memory);
	ctl_table_number(table, device->contexts_max);
}

/* Adds devices that clients cannot use. */
static void
add_unexported(struct ctl_table *table, const Gpupool__AdminReport *report)
{
	for (size_t d = 0; d < report->n_devices; d++) {
		Gpupool__AdminUnit unit = GPUPOOL__ADMIN_UNIT__INIT;
		bool exported = false;

		for (size_t i = 0; i < report->n_units; i++)
			exported = exported || report->units[i]->device == d;
		unit.device = (uint32_t)d;
		unit.parts = 1;
		unit.memory_total = report->devices[d]->memory_total;
		unit.multiprocessors = report->devices[d]->multiprocessors;
		if (!exported)
			add_device(table, report, UINT64_MAX, &unit);
	}
}

static int
device_list(const struct ctl *ctl)
{
	static const struct ctl_column columns[] = {
		{ "DEVICE", "device", CTL_NUMBER },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "PART", "part", CTL_TEXT },
		{ "NAME", "name", CTL_TEXT },
		{ "MEMORY", "memory_bytes", CTL_BYTES },
		{ "TOTAL", "memory_total_bytes", CTL_BYTES },
		{ "SMS", "sms", CTL_NUMBER },
		{ "POLICY", "policy", CTL_TEXT },
		{ "SESSIONS", "sessions", CTL_NUMBER },
		{ "GPU TIME", "gpu_seconds", CTL_NS },
		{ "UUID", "uuid", CTL_TEXT },
		{ "STATE", "state", CTL_TEXT },
		{ "REASON", "reason", CTL_TEXT },
		{ "CONTEXTS", "contexts", CTL_NUMBER },
		{ "CONTEXT MEMORY", "context_memory_bytes", CTL_BYTES },
		{ "CONTEXTS MAX", "contexts_max", CTL_NUMBER },
	};
	/* On a narrow terminal columns are omitted from the end of this list. */
	static const char *const least[] = {
		"policy", "sessions", "gpu_seconds",          "part",        "gpu", "sms", "uuid",
		"reason", "contexts", "context_memory_bytes", "contexts_max"
	};
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	table.has_old_keys = true;
	ctl_table_fit(&table, ctl_terminal_width(), least, COUNT(least));
	for (size_t i = 0; i < reply->report->n_units; i++)
		add_device(&table, reply->report, i, reply->report->units[i]);
	add_unexported(&table, reply->report);
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
device_enable(const struct ctl *ctl, const char *text)
{
	Gpupool__AdminEnableDevice enable = GPUPOOL__ADMIN_ENABLE_DEVICE__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	uint64_t number;

	if (!ctl_parse_number(text, 0, UINT32_MAX, &number))
		return ctl_fail(
			"invalid device \"%s\": use a number of the column GPU of gpupoolctl "
			"device list",
			text);
	enable.device = (uint32_t)number;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_ENABLE_DEVICE;
	request.enable_device = &enable;
	return ctl_request_status(ctl, &request, CTL_TIMEOUT_MS);
}

int
ctl_device(const struct ctl *ctl, int count, char **argv)
{
	if (count == 1 && strcmp(argv[0], "list") == 0)
		return device_list(ctl);
	if (count == 2 && strcmp(argv[0], "enable") == 0)
		return device_enable(ctl, argv[1]);
	return ctl_unknown("device", count, argv, "device list | enable GPU");
}

/* Clients. */

static uint32_t
get_sms(const Gpupool__AdminReport *report, uint32_t device, uint32_t sms)
{
	return sms ? sms : report->devices[device]->multiprocessors;
}

uint64_t
ctl_memory_limit(const Gpupool__AdminReport *report, const Gpupool__AdminSession *session,
		 const Gpupool__AdminLine *line)
{
	uint64_t limit = line->memory_max;

	for (size_t t = 0; t < report->n_tenants; t++) {
		const Gpupool__AdminTenant *tenant = report->tenants[t];

		if (strcmp(tenant->name, session->tenant) != 0)
			continue;
		for (size_t i = 0; i < tenant->n_lines; i++)
			if (tenant->lines[i]->device == line->device &&
			    tenant->lines[i]->memory_max < limit)
				limit = tenant->lines[i]->memory_max;
	}
	return limit;
}

static void
add_session(struct ctl_table *table, const Gpupool__AdminReport *report,
	    const Gpupool__AdminSession *s, const Gpupool__AdminLine *line)
{
	ctl_table_number(table, s->id);
	ctl_table_text(table, s->tenant);
	ctl_table_text(table, s->host);
	ctl_table_text(table, s->user);
	ctl_table_number(table, s->pid);
	ctl_table_text(table, s->program);
	ctl_table_text(table, get_name(states, COUNT(states), s->state));
	ctl_table_number(table, s->started_s);
	ctl_table_number(table, line->device);
	ctl_table_number(table, line->memory);
	ctl_table_number(table, ctl_memory_limit(report, s, line));
	ctl_table_number(table, get_sms(report, line->device, line->sm_assigned));
	ctl_table_number(table, line->gpu_ns);
}

static void
add_details(struct ctl_table *table, const Gpupool__AdminReport *report,
	    const Gpupool__AdminSession *s, const Gpupool__AdminLine *line)
{
	static const Gpupool__AdminCounts none = GPUPOOL__ADMIN_COUNTS__INIT;
	const Gpupool__AdminCounts *counts = s->counts ? s->counts : &none;

	ctl_table_text(table, s->address);
	ctl_table_text(table, s->credentials);
	ctl_table_number(table, s->worker);
	ctl_table_text(table, ctl_priority_name(s->priority));
	ctl_table_number(table, line->memory_peak);
	ctl_table_number(table, get_sms(report, line->device, line->sm_wanted));
	ctl_table_number(table, counts->launches);
	ctl_table_number(table, counts->copies);
	ctl_table_number(table, counts->copied_in);
	ctl_table_number(table, counts->copied_out);
	ctl_table_number(table, counts->refusals);
	ctl_table_number(table, counts->waited_ns);
	ctl_table_number(table, counts->throttled_ns);
	ctl_table_number(table, s->pinned);
}

static int
list_sessions(const struct ctl *ctl)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_NUMBER },
		{ "TENANT", "tenant", CTL_TEXT },
		{ "HOST", "host", CTL_TEXT },
		{ "USER", "user", CTL_TEXT },
		{ "PID", "pid", CTL_NUMBER },
		{ "PROGRAM", "program", CTL_TEXT },
		{ "STATE", "state", CTL_TEXT },
		{ "AGE", "started", CTL_SINCE },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "MEMORY", "memory_bytes", CTL_BYTES },
		{ "LIMIT", "memory_limit_bytes", CTL_LIMIT },
		{ "SMS", "sms", CTL_NUMBER },
		{ "GPU TIME", "gpu_seconds", CTL_NS },
	};
	/* On a narrow terminal columns are omitted from the end of this list. */
	static const char *const least[] = { "gpu_seconds", "state",   "user",
					     "host",        "started", "memory_limit_bytes",
					     "gpu",         "sms",     "pid" };
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	ctl_table_fit(&table, ctl_terminal_width(), least, COUNT(least));
	for (size_t i = 0; i < reply->report->n_sessions; i++) {
		const Gpupool__AdminSession *s = reply->report->sessions[i];

		for (size_t d = 0; d < s->n_lines; d++)
			add_session(&table, reply->report, s, s->lines[d]);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
show_session(const struct ctl *ctl, const char *id)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_NUMBER },
		{ "tenant", "tenant", CTL_TEXT },
		{ "host", "host", CTL_TEXT },
		{ "user", "user", CTL_TEXT },
		{ "process", "pid", CTL_NUMBER },
		{ "program", "program", CTL_TEXT },
		{ "state", "state", CTL_TEXT },
		{ "session age", "started", CTL_SINCE },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "memory", "memory_bytes", CTL_BYTES },
		{ "memory limit", "memory_limit_bytes", CTL_LIMIT },
		{ "SMs", "sms", CTL_NUMBER },
		{ "GPU time", "gpu_seconds", CTL_NS },
		{ "address", "address", CTL_TEXT },
		{ "authenticated by", "credentials", CTL_TEXT },
		{ "worker", "worker", CTL_NUMBER },
		{ "priority", "priority", CTL_TEXT },
		{ "peak memory", "memory_peak_bytes", CTL_BYTES },
		{ "SMs wanted", "sms_wanted", CTL_NUMBER },
		{ "launches", "launches", CTL_NUMBER },
		{ "copies", "copies", CTL_NUMBER },
		{ "copied in", "copied_in_bytes", CTL_BYTES },
		{ "copied out", "copied_out_bytes", CTL_BYTES },
		{ "refusals", "refusals", CTL_NUMBER },
		{ "waited", "waited_seconds", CTL_NS },
		{ "throttled", "throttled_seconds", CTL_NS },
		{ "pinned memory", "pinned_bytes", CTL_BYTES },
	};
	Gpupool__AdminReply *reply;
	struct ctl_table table;
	uint64_t session;

	if (!ctl_parse_session(id, &session) || ctl_request_report(ctl, session, &reply))
		return -1;
	if (reply->report->n_sessions == 0) {
		gp_admin_free_reply(reply);
		return ctl_fail("unknown session %llu", (unsigned long long)session);
	}
	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t d = 0; d < reply->report->sessions[0]->n_lines; d++) {
		const Gpupool__AdminSession *s = reply->report->sessions[0];

		add_session(&table, reply->report, s, s->lines[d]);
		add_details(&table, reply->report, s, s->lines[d]);
	}
	ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

int
ctl_session(const struct ctl *ctl, int count, char **argv)
{
	const char *verb = count ? argv[0] : "";

	if (strcmp(verb, "list") == 0 && count == 1)
		return list_sessions(ctl);
	if (strcmp(verb, "show") == 0 && count == 2)
		return show_session(ctl, argv[1]);
	if (strcmp(verb, "set") == 0)
		return ctl_session_set(ctl, count - 1, argv + 1);
	if (strcmp(verb, "terminate") == 0)
		return ctl_session_terminate(ctl, count - 1, argv + 1);
	return ctl_unknown("session", count, argv,
			   "session list | show ID | set ID NAME=VALUE... | terminate ID | "
			   "terminate --tenant NAME");
}

/* Tenants. */

static void
add_tenant(struct ctl_table *table, const Gpupool__AdminReport *report,
	   const Gpupool__AdminTenant *t, const Gpupool__AdminLine *line)
{
	static const Gpupool__AdminCounts none = GPUPOOL__ADMIN_COUNTS__INIT;
	const Gpupool__AdminCounts *counts = t->counts ? t->counts : &none;

	ctl_table_text(table, t->name);
	ctl_table_number(table, t->sessions);
	ctl_table_number(table, t->sessions_max == UINT32_MAX ? UINT64_MAX : t->sessions_max);
	ctl_table_number(table, t->waiting);
	ctl_table_number(table, t->sessions_total);
	ctl_table_number(table, line->device);
	ctl_table_number(table, line->memory);
	ctl_table_number(table, line->memory_max);
	ctl_table_number(table, get_sms(report, line->device, line->sm_wanted));
	ctl_table_number(table, line->weight);
	ctl_table_number(table, (uint64_t)line->limit * 100);
	ctl_table_number(table, (uint64_t)line->time_share * 100);
	ctl_table_text(table, ctl_priority_name(t->priority));
	ctl_table_number(table, t->bandwidth_max);
	ctl_table_number(table, line->gpu_ns);
	ctl_table_number(table, counts->launches);
	ctl_table_number(table, counts->refusals);
	ctl_table_number(table, t->pinned);
	ctl_table_number(table, t->pinned_max);
}

static int
list_tenants(const struct ctl *ctl)
{
	static const struct ctl_column columns[] = {
		{ "TENANT", "tenant", CTL_TEXT },
		{ "SESSIONS", "sessions", CTL_NUMBER },
		{ "MAX", "sessions_max", CTL_NUMBER },
		{ "WAITING", "clients_waiting", CTL_NUMBER },
		{ "SERVED", "sessions_total", CTL_NUMBER },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "MEMORY", "memory_bytes", CTL_BYTES },
		{ "LIMIT", "memory_limit_bytes", CTL_LIMIT },
		{ "SMS", "sms", CTL_NUMBER },
		{ "WEIGHT", "weight", CTL_NUMBER },
		{ "TIME LIMIT", "limit_percent", CTL_PERCENT },
		{ "SHARE", "share_percent", CTL_PERCENT },
		{ "PRIORITY", "priority", CTL_TEXT },
		{ "BANDWIDTH", "bandwidth_limit_bytes_per_second", CTL_LIMIT },
		{ "GPU TIME", "gpu_seconds", CTL_NS },
		{ "LAUNCHES", "launches", CTL_NUMBER },
		{ "REFUSALS", "refusals", CTL_NUMBER },
		{ "PINNED", "pinned_bytes", CTL_BYTES },
		{ "PINNED LIMIT", "pinned_limit_bytes", CTL_LIMIT },
	};
	/* On a narrow terminal columns are omitted from the end of this list. */
	static const char *const least[] = { "gpu_seconds",
					     "weight",
					     "sms",
					     "limit_percent",
					     "bandwidth_limit_bytes_per_second",
					     "priority",
					     "gpu",
					     "share_percent",
					     "refusals",
					     "launches",
					     "sessions_total",
					     "sessions_max",
					     "clients_waiting",
					     "pinned_limit_bytes",
					     "pinned_bytes" };
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	table.has_old_keys = true;
	ctl_table_fit(&table, ctl_terminal_width(), least, COUNT(least));
	for (size_t i = 0; i < reply->report->n_tenants; i++) {
		const Gpupool__AdminTenant *t = reply->report->tenants[i];

		for (size_t d = 0; d < t->n_lines; d++)
			add_tenant(&table, reply->report, t, t->lines[d]);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

int
ctl_tenant(const struct ctl *ctl, int count, char **argv)
{
	if (count == 1 && strcmp(argv[0], "list") == 0)
		return list_tenants(ctl);
	if (count && strcmp(argv[0], "set") == 0)
		return ctl_tenant_set(ctl, count - 1, argv + 1);
	return ctl_unknown("tenant", count, argv, "tenant list | set NAME NAME=VALUE... [--save]");
}
