/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/metrics_text.h"

#include <stdbool.h>
#include <string.h>

#define NS 1000000000

/* Subject of a sample; members that do not apply are NULL. */
struct subject {
	const Gpupool__AdminReport *report;
	const Gpupool__AdminDevice *device;
	const Gpupool__AdminTenant *tenant;
	const Gpupool__AdminSession *session;
	const Gpupool__AdminLine *line; /* of the tenant or session on the device */
	const Gpupool__AdminCounts *counts;
	const Gpupool__AdminRefusals *refusals;
	const Gpupool__AdminToken *token;
};

enum scope {
	SCOPE_DAEMON,
	SCOPE_EXPIRY, /* of the daemon; omitted if 0 */
	SCOPE_TOKEN,
	SCOPE_DEVICE,
	SCOPE_TENANT, /* all devices together */
	SCOPE_TENANT_DEVICE,
	SCOPE_HAMI, /* as TENANT_DEVICE, with HAMi's labels */
	SCOPE_SESSION,
	SCOPE_SESSION_DEVICE,
	SCOPE_REFUSAL,
};

struct family {
	const char *name, *help;
	enum scope scope;
	uint64_t (*value)(const struct subject *s);
	const char *label; /* one additional label with its value, or NULL */
};

/* Values. */

#define VALUE(name, expression)                                                                    \
	static uint64_t name(const struct subject *s)                                              \
	{                                                                                          \
		return expression;                                                                 \
	}
/* clang-format off */
VALUE(draining, s->report->draining)
VALUE(sessions_max, s->report->sessions_max)
VALUE(certificate_until, s->report->certificate_until_s)
VALUE(crl_until, s->report->crl_until_s)
VALUE(token_until, s->token->until_s)
VALUE(workers, s->report->n_workers)
VALUE(workers_ready, s->report->workers_ready)
VALUE(workers_hanging, s->report->workers_hanging)
VALUE(workers_lost, s->report->workers_lost)
VALUE(waiting, s->report->waiting)
VALUE(usage_lost, s->report->usage_lost)
VALUE(quarantines, s->report->n_quarantines)
VALUE(quarantines_total, s->report->quarantines_total)
VALUE(started, s->session ? s->session->started_s : s->report->started_s)
VALUE(refused_clients, s->refusals->count)
VALUE(device_sessions, s->device->sessions)
VALUE(device_memory, s->device->memory)
VALUE(device_memory_total, s->device->memory_total)
VALUE(device_memory_mib, s->device->memory >> 20)
VALUE(device_memory_total_mib, s->device->memory_total >> 20)
VALUE(device_multiprocessors, s->device->multiprocessors)
VALUE(device_gpu, s->device->gpu_ns)
VALUE(device_sick, s->device->sick)
VALUE(device_contexts, s->device->contexts)
VALUE(device_contexts_max, s->device->contexts_max)
VALUE(device_context_memory, s->device->context_memory)
VALUE(tenant_sessions, s->tenant->sessions)
VALUE(tenant_sessions_total, s->tenant->sessions_total)
VALUE(weight, s->line->weight)
VALUE(time_limit, s->line->limit)
VALUE(memory, s->line->memory)
VALUE(memory_peak, s->line->memory_peak)
VALUE(memory_limit,
      s->line->memory_max < s->device->memory_total ? s->line->memory_max : s->device->memory_total)
VALUE(multiprocessors_limit, s->line->sm_wanted ? s->line->sm_wanted : s->device->multiprocessors)
VALUE(multiprocessors_assigned, s->line->sm_assigned ? s->line->sm_assigned : s->device->multiprocessors)
VALUE(gpu, s->line->gpu_ns)
VALUE(launches, s->counts->launches)
VALUE(copies, s->counts->copies)
VALUE(copied_in, s->counts->copied_in)
VALUE(copied_out, s->counts->copied_out)
VALUE(refusals, s->counts->refusals)
VALUE(waited, s->counts->waited_ns)
VALUE(throttled, s->counts->throttled_ns)
/* clang-format on */
#undef VALUE

/* Names follow the conventions of Prometheus: a counter ends in _total. Values of _seconds_total
 * are in nanoseconds here. An entry without name and help belongs to the family before it. */
static const struct family families[] = {
	{ "gpupool_start_time_seconds", "When the daemon was started, since 1970.", SCOPE_DAEMON,
	  started, NULL },
	{ "gpupool_draining", "1: no new sessions are admitted.", SCOPE_DAEMON, draining, NULL },
	{ "gpupool_sessions_max", "Sessions that the daemon serves at a time.", SCOPE_DAEMON,
	  sessions_max, NULL },
	{ "gpupool_refused_clients_total", "Clients refused for their credentials.", SCOPE_REFUSAL,
	  refused_clients, NULL },

	{ "gpupool_waiting_clients", "Clients that wait for a session.", SCOPE_DAEMON, waiting,
	  NULL },
	{ "gpupool_workers", "Worker processes.", SCOPE_DAEMON, workers, NULL },
	{ "gpupool_workers_ready", "Workers in reserve, ready for a session.", SCOPE_DAEMON,
	  workers_ready, NULL },
	{ "gpupool_workers_hanging", "Workers that do not answer.", SCOPE_DAEMON, workers_hanging,
	  NULL },
	{ "gpupool_workers_lost_total",
	  "Workers that exited unexpectedly or lost their CUDA contexts.", SCOPE_DAEMON,
	  workers_lost, NULL },
	{ "gpupool_quarantined_programs",
	  "Programs that get workers of their own because of a fault.", SCOPE_DAEMON, quarantines,
	  NULL },
	{ "gpupool_quarantines_total", "Programs that have been put into quarantine.", SCOPE_DAEMON,
	  quarantines_total, NULL },
	{ "gpupool_usage_records_lost_total", "Usage records that could not be written.",
	  SCOPE_DAEMON, usage_lost, NULL },
	{ "gpupool_certificate_expiry_time_seconds",
	  "Expiry time of the daemon's certificate, in seconds since 1970.", SCOPE_EXPIRY,
	  certificate_until, NULL },
	{ "gpupool_crl_expiry_time_seconds", "Expiry time of the CRL, in seconds since 1970.",
	  SCOPE_EXPIRY, crl_until, NULL },
	{ "gpupool_token_expiry_time_seconds",
	  "Expiry time of a valid token, in seconds since 1970; the 100 tokens that expire next.",
	  SCOPE_TOKEN, token_until, NULL },

	{ "gpupool_device_sessions", "Sessions that see the device.", SCOPE_DEVICE, device_sessions,
	  NULL },
	{ "gpupool_device_memory_used_bytes", "Device memory allocated by sessions.", SCOPE_DEVICE,
	  device_memory, NULL },
	{ "gpupool_device_memory_limit_bytes", "Device memory in all.", SCOPE_DEVICE,
	  device_memory_total, NULL },
	{ "gpupool_device_multiprocessors", "Multiprocessors of the device.", SCOPE_DEVICE,
	  device_multiprocessors, NULL },
	{ "gpupool_device_gpu_seconds_total", "Measured time of all sessions' kernels.",
	  SCOPE_DEVICE, device_gpu, NULL },
	{ "gpupool_device_sick", "Whether the device has failed, so that no session uses it.",
	  SCOPE_DEVICE, device_sick, NULL },
	{ "gpupool_device_contexts", "Workers with a CUDA context on the device.", SCOPE_DEVICE,
	  device_contexts, NULL },
	{ "gpupool_device_contexts_max",
	  "Workers that may have a CUDA context on the device (workers-per-device).", SCOPE_DEVICE,
	  device_contexts_max, NULL },
	{ "gpupool_device_context_memory_bytes",
	  "Device memory of the workers' CUDA contexts, which counts for no tenant.", SCOPE_DEVICE,
	  device_context_memory, NULL },
	{ "DCGM_FI_DEV_FB_USED", "Device memory allocated by sessions (in MiB).", SCOPE_DEVICE,
	  device_memory_mib, NULL },
	{ "DCGM_FI_DEV_FB_TOTAL", "Device memory in all (in MiB).", SCOPE_DEVICE,
	  device_memory_total_mib, NULL },

	{ "gpupool_tenant_sessions", "Sessions of the tenant.", SCOPE_TENANT, tenant_sessions,
	  NULL },
	{ "gpupool_tenant_sessions_total", "Sessions that the tenant has had.", SCOPE_TENANT,
	  tenant_sessions_total, NULL },
	{ "gpupool_tenant_launches_total", "Kernels, and copies within the device.", SCOPE_TENANT,
	  launches, NULL },
	{ "gpupool_tenant_copies_total", "Copies between client and device.", SCOPE_TENANT, copies,
	  NULL },
	{ "gpupool_tenant_copied_bytes_total", "Bytes from (in) and to (out) clients.",
	  SCOPE_TENANT, copied_in, "direction=\"in\"" },
	{ NULL, NULL, SCOPE_TENANT, copied_out, "direction=\"out\"" },
	{ "gpupool_tenant_refusals_total", "Allocations refused for a quota.", SCOPE_TENANT,
	  refusals, NULL },
	{ "gpupool_tenant_wait_seconds_total", "Time that launches waited for the tenant's turn.",
	  SCOPE_TENANT, waited, NULL },
	{ "gpupool_tenant_throttled_seconds_total",
	  "Time that copies waited for the bandwidth limit.", SCOPE_TENANT, throttled, NULL },
	{ "gpupool_tenant_memory_used_bytes", "Device memory allocated by the tenant.",
	  SCOPE_TENANT_DEVICE, memory, NULL },
	{ "gpupool_tenant_memory_limit_bytes", "Device memory limit of the tenant.",
	  SCOPE_TENANT_DEVICE, memory_limit, NULL },
	{ "gpupool_tenant_multiprocessors_limit", "Multiprocessors that it may use.",
	  SCOPE_TENANT_DEVICE, multiprocessors_limit, NULL },
	{ "gpupool_tenant_weight", "Its weight when GPU time is shared.", SCOPE_TENANT_DEVICE,
	  weight, NULL },
	{ "gpupool_tenant_gpu_time_limit_percent", "GPU time that it may use.", SCOPE_TENANT_DEVICE,
	  time_limit, NULL },
	{ "gpupool_tenant_gpu_seconds_total", "Measured time of its kernels.", SCOPE_TENANT_DEVICE,
	  gpu, NULL },
	{ "hami_vgpu_memory_used_bytes", "Device memory allocated by the tenant.", SCOPE_HAMI,
	  memory, NULL },
	{ "hami_vgpu_memory_limit_bytes", "Device memory limit of the tenant.", SCOPE_HAMI,
	  memory_limit, NULL },

	{ "gpupool_session_start_time_seconds", "When the session began, since 1970.",
	  SCOPE_SESSION, started, NULL },
	{ "gpupool_session_launches_total", "Kernels, and copies within the device.", SCOPE_SESSION,
	  launches, NULL },
	{ "gpupool_session_copies_total", "Copies between client and device.", SCOPE_SESSION,
	  copies, NULL },
	{ "gpupool_session_copied_bytes_total", "Bytes from (in) and to (out) the client.",
	  SCOPE_SESSION, copied_in, "direction=\"in\"" },
	{ NULL, NULL, SCOPE_SESSION, copied_out, "direction=\"out\"" },
	{ "gpupool_session_refusals_total", "Allocations refused for a quota.", SCOPE_SESSION,
	  refusals, NULL },
	{ "gpupool_session_wait_seconds_total", "Time that launches waited for the tenant's turn.",
	  SCOPE_SESSION, waited, NULL },
	{ "gpupool_session_throttled_seconds_total",
	  "Time that copies waited for the bandwidth limit.", SCOPE_SESSION, throttled, NULL },
	{ "gpupool_session_memory_used_bytes", "Device memory allocated by the session.",
	  SCOPE_SESSION_DEVICE, memory, NULL },
	{ "gpupool_session_memory_peak_bytes", "Peak device memory of the session.",
	  SCOPE_SESSION_DEVICE, memory_peak, NULL },
	{ "gpupool_session_memory_limit_bytes", "Device memory limit of the session.",
	  SCOPE_SESSION_DEVICE, memory_limit, NULL },
	{ "gpupool_session_multiprocessors_assigned", "Multiprocessors that it has.",
	  SCOPE_SESSION_DEVICE, multiprocessors_assigned, NULL },
	{ "gpupool_session_multiprocessors_limit", "Multiprocessors that it may have.",
	  SCOPE_SESSION_DEVICE, multiprocessors_limit, NULL },
	{ "gpupool_session_gpu_seconds_total", "Measured time of its kernels.",
	  SCOPE_SESSION_DEVICE, gpu, NULL },
};

/* Labels. */

struct writer {
	FILE *file;
	const char *name;
	bool any; /* a label has been written */
};

static void
write_separator(struct writer *w)
{
	fputc(w->any ? ',' : '{', w->file);
	w->any = true;
}

static void
write_label(struct writer *w, const char *key, const char *value)
{
	write_separator(w);
	fprintf(w->file, "%s=\"", key);
	for (;;) {
		size_t plain = strcspn(value, "\n\"\\");

		(void)fwrite(value, 1, plain, w->file);
		value += plain;
		if (!*value)
			break;
		fputs(*value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\", w->file);
		value++;
	}
	fputc('"', w->file);
}

static void
write_number_label(struct writer *w, const char *key, uint64_t value)
{
	write_separator(w);
	fprintf(w->file, "%s=\"%llu\"", key, (unsigned long long)value);
}

static void
write_device_labels(struct writer *w, const Gpupool__AdminDevice *device, const char *ordinal_key,
		    const char *uuid_key)
{
	char uuid[GP_UUID_TEXT_SIZE];

	gp_admin_format_uuid(&device->uuid, uuid);
	write_number_label(w, ordinal_key, device->ordinal);
	write_label(w, uuid_key, uuid);
}

static void
write_session_labels(struct writer *w, const Gpupool__AdminSession *session)
{
	write_number_label(w, "session", session->id);
	write_label(w, "tenant", session->tenant);
	write_label(w, "client", session->address);
	write_label(w, "user", session->user);
	write_label(w, "host", session->host);
	write_number_label(w, "pid", session->pid);
	write_label(w, "program", session->program);
}

static void
write_labels(struct writer *w, const struct family *family, const struct subject *s)
{
	if (family->scope == SCOPE_HAMI)
		write_device_labels(w, s->device, "vdevice_index", "device_uuid");
	else if (s->device)
		write_device_labels(w, s->device, "gpu", "UUID");
	if (family->scope == SCOPE_DEVICE)
		write_label(w, "modelName", s->device->name);
	if (s->tenant)
		write_label(w, "tenant", s->tenant->name);
	if (s->session)
		write_session_labels(w, s->session);
	if (s->token) {
		write_label(w, "token", s->token->id);
		write_label(w, "tenant", s->token->tenant);
	}
	if (s->refusals)
		write_label(w, "reason", s->refusals->reason);
	if (family->label) {
		write_separator(w);
		fputs(family->label, w->file);
	}
	if (w->any)
		fputc('}', w->file);
}

static bool
has_suffix(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length >= tail && strcmp(name + length - tail, end) == 0;
}

static void
write_sample(FILE *file, const char *name, const struct family *family, const struct subject *s)
{
	struct writer w = { .file = file };
	uint64_t value = family->value(s);

	fputs(name, file);
	write_labels(&w, family, s);
	if (has_suffix(name, "_seconds_total"))
		fprintf(file, " %llu.%09llu\n", (unsigned long long)(value / NS),
			(unsigned long long)(value % NS));
	else
		fprintf(file, " %llu\n", (unsigned long long)value);
}

/* Samples. */

static void
write_lines(FILE *file, const char *name, const struct family *family, struct subject *s,
	    Gpupool__AdminLine *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		s->line = lines[i];
		s->device = s->report->devices[lines[i]->device];
		write_sample(file, name, family, s);
	}
}

static void
write_tenants(FILE *file, const char *name, const struct family *family,
	      const Gpupool__AdminReport *report)
{
	for (size_t i = 0; i < report->n_tenants; i++) {
		const Gpupool__AdminTenant *tenant = report->tenants[i];
		struct subject s = { .report = report, .tenant = tenant, .counts = tenant->counts };

		if (family->scope == SCOPE_TENANT)
			write_sample(file, name, family, &s);
		else
			write_lines(file, name, family, &s, tenant->lines, tenant->n_lines);
	}
}

static void
write_sessions(FILE *file, const char *name, const struct family *family,
	       const Gpupool__AdminReport *report)
{
	for (size_t i = 0; i < report->n_sessions; i++) {
		const Gpupool__AdminSession *session = report->sessions[i];
		struct subject s = { .report = report,
				     .session = session,
				     .counts = session->counts };

		if (family->scope == SCOPE_SESSION)
			write_sample(file, name, family, &s);
		else
			write_lines(file, name, family, &s, session->lines, session->n_lines);
	}
}

static void
write_family(FILE *file, const char *name, const struct family *family,
	     const Gpupool__AdminReport *report)
{
	struct subject s = { .report = report };

	switch (family->scope) {
	case SCOPE_DAEMON:
		write_sample(file, name, family, &s);
		break;
	case SCOPE_EXPIRY:
		if (family->value(&s))
			write_sample(file, name, family, &s);
		break;
	case SCOPE_TOKEN:
		for (size_t i = 0; i < report->n_tokens; i++) {
			s.token = report->tokens[i];
			write_sample(file, name, family, &s);
		}
		break;
	case SCOPE_DEVICE:
		for (size_t i = 0; i < report->n_devices; i++) {
			s.device = report->devices[i];
			write_sample(file, name, family, &s);
		}
		break;
	case SCOPE_TENANT:
	case SCOPE_TENANT_DEVICE:
	case SCOPE_HAMI:
		write_tenants(file, name, family, report);
		break;
	case SCOPE_SESSION:
	case SCOPE_SESSION_DEVICE:
		write_sessions(file, name, family, report);
		break;
	case SCOPE_REFUSAL:
		for (size_t i = 0; i < report->n_refusals; i++) {
			s.refusals = report->refusals[i];
			write_sample(file, name, family, &s);
		}
		break;
	}
}

void
gpd_metrics_write(FILE *file, const Gpupool__AdminReport *report)
{
	const char *name = "gpupool_build_info";

	fprintf(file,
		"# HELP %s The daemon's version; always 1.\n# TYPE %s gauge\n"
		"%s{version=\"%s\"} 1\n",
		name, name, name, report->version);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct family *family = &families[i];

		if (family->name) {
			name = family->name;
			fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, family->help, name,
				has_suffix(name, "_total") ? "counter" : "gauge");
		}
		write_family(file, name, family, report);
	}
}
