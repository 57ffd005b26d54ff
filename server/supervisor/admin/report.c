/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/report.h"

#include "base/clock.h"
#include "server/supervisor/auth/tls_files.h"
#include "server/supervisor/workers/worker_process.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Memory quotas are multiples of this size. */
#define MEMORY_UNIT ((uint64_t)2 << 20)
/* Number of reported tokens, those that expire first. */
#define TOKENS_MAX 100

struct device_lines {
	Gpupool__AdminLine device_lines[GPD_LEDGER_DEVICES], *list[GPD_LEDGER_DEVICES];
};

struct tenant {
	Gpupool__AdminTenant message;
	Gpupool__AdminCounts counts;
	struct device_lines device_lines;
};

struct session {
	Gpupool__AdminSession message;
	Gpupool__AdminCounts counts;
	struct device_lines device_lines;
};

/* A report of the maximum size; the system allocates only the pages that are used. */
struct buffer {
	Gpupool__AdminReport report; /* first: callers get a pointer to it */
	Gpupool__AdminDevice devices[GPD_LEDGER_DEVICES], *device_list[GPD_LEDGER_DEVICES];
	Gpupool__AdminUnit units[GPD_UNITS_MAX], *unit_list[GPD_UNITS_MAX];
	Gpupool__AdminRefusals refusals[GPD_AUTH_REFUSALS], *refusal_list[GPD_AUTH_REFUSALS];
	char *addresses[GPD_LISTEN_MAX];
	Gpupool__AdminToken tokens[TOKENS_MAX], *token_list[TOKENS_MAX];
	Gpupool__AdminQuarantine quarantines[GPD_QUARANTINE_MAX];
	Gpupool__AdminQuarantine *quarantine_list[GPD_QUARANTINE_MAX];
	char reasons[GPD_QUARANTINE_MAX][GPD_QUARANTINE_TEXT_MAX];
	Gpupool__AdminWorker workers[GPD_WORKERS_MAX], *worker_list[GPD_WORKERS_MAX];
	struct {
		Gpupool__AdminContext all[GPD_LEDGER_DEVICES], *list[GPD_LEDGER_DEVICES];
	} contexts[GPD_WORKERS_MAX];               /* by worker */
	struct tenant tenants[GPD_LEDGER_TENANTS]; /* indexed as in the ledger */
	Gpupool__AdminTenant *tenant_list[GPD_LEDGER_TENANTS];
	struct session sessions[GPD_LEDGER_SESSIONS]; /* indexed as in the ledger */
	Gpupool__AdminSession *session_list[GPD_LEDGER_SESSIONS];
};

/* clang-format off */
#define COPY(name) to->name = atomic_load(&from->name);
#define ADD(name) to->name += from->name;
/* clang-format on */

static void
fill_counts(Gpupool__AdminCounts *to, const struct gpd_ledger_counts *from)
{
	gpupool__admin_counts__init(to);
	GPD_LEDGER_EACH_COUNT(COPY)
}

static void
add_counts(Gpupool__AdminCounts *to, const Gpupool__AdminCounts *from)
{
	GPD_LEDGER_EACH_COUNT(ADD)
}

static Gpupool__AdminLine *
add_line(struct device_lines *device_lines, size_t *count, int device)
{
	Gpupool__AdminLine *line = &device_lines->device_lines[*count];

	gpupool__admin_line__init(line);
	line->device = (uint32_t)device;
	device_lines->list[(*count)++] = line;
	return line;
}

/* Waiting clients between two requests exist in the queue only. */
static uint32_t
count_waiting(const struct gpd_admission *admission)
{
	const struct gpd_queue *queue = &admission->quota->queue;
	uint32_t waiting = gpd_queue_length(queue, GPD_QUEUE_ALL, gp_now_ms());

	for (const struct gpd_connection *p = admission->connection_list; p; p = p->next)
		waiting += p->state == GPD_CONNECTION_QUEUED &&
			   !gpd_queue_has(queue, p->hello->hello->wait);
	return waiting;
}

/* Tenants. */

static void
add_tenant(const struct gpd_report_source *source, struct buffer *buffer, int index)
{
	const struct gpd_ledger_tenant *from = &source->admission->quota->ledger->tenants[index];
	struct tenant *to = &buffer->tenants[index];
	Gpupool__AdminTenant *tenant = &to->message;

	gpupool__admin_tenant__init(tenant);
	buffer->tenant_list[buffer->report.n_tenants++] = tenant;
	tenant->name = (char *)from->name;
	tenant->sessions = atomic_load(&from->sessions);
	tenant->sessions_total = atomic_load(&from->sessions_total);
	tenant->priority = atomic_load(&from->priority);
	tenant->bandwidth_max = atomic_load(&from->bandwidth_max);
	tenant->sessions_max = source->admission->quota->tenants.sessions_max[index];
	tenant->waiting =
		gpd_queue_length(&source->admission->quota->queue, (uint32_t)index, gp_now_ms());
	tenant->pinned = atomic_load(&from->devices[GPD_LEDGER_PINNED].memory);
	tenant->pinned_max = atomic_load(&from->devices[GPD_LEDGER_PINNED].memory_max);
	fill_counts(&to->counts, &from->ended);
	tenant->counts = &to->counts;
	tenant->lines = to->device_lines.list;
	for (int d = 0; d < source->admission->quota->tenants.device_count; d++) {
		const struct gpd_ledger_tenant_line *used = &from->devices[d];
		Gpupool__AdminLine *line = add_line(&to->device_lines, &tenant->n_lines, d);

		line->memory = GPD_LEDGER_IN_USE(used);
		line->memory_max = atomic_load(&used->memory_max);
		line->gpu_ns = atomic_load(&used->gpu_ns);
		line->sm_wanted = atomic_load(&used->sm_wanted);
		line->weight = atomic_load(&used->weight);
		line->limit = atomic_load(&used->limit);
		line->time_share = atomic_load(&used->time_share);
	}
}

static void
add_tenants(const struct gpd_report_source *source, struct buffer *buffer)
{
	buffer->report.tenants = buffer->tenant_list;
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (source->admission->quota->ledger->tenants[i].name[0])
			add_tenant(source, buffer, i);
	}
}

/* Sessions. */

static Gpupool__AdminSession__State
session_get_state(const struct gpd_report_source *source, uint64_t id)
{
	const struct gpd_connection *connection = gpd_admission_find(source->admission, id);

	if (!connection)
		return GPUPOOL__ADMIN_SESSION__STATE__ENDING;
	return connection->state == GPD_CONNECTION_RUNNING ? GPUPOOL__ADMIN_SESSION__STATE__RUNNING
							   : GPUPOOL__ADMIN_SESSION__STATE__OPENING;
}

static void
fill_session_lines(const struct gpd_report_source *source, struct session *to,
		   const struct gpd_ledger_session *from, uint32_t seen)
{
	const struct gpd_ledger_tenant *tenant =
		&source->admission->quota->ledger->tenants[from->tenant];

	to->message.lines = to->device_lines.list;
	for (int d = 0; d < source->admission->quota->tenants.device_count; d++) {
		const struct gpd_ledger_line *used = &from->devices[d];
		Gpupool__AdminLine *line;

		if (!(seen >> d & 1))
			continue;
		line = add_line(&to->device_lines, &to->message.n_lines, d);
		line->memory = GPD_LEDGER_IN_USE(used);
		line->memory_max = atomic_load(&used->memory_max);
		line->memory_peak = atomic_load(&used->memory_peak);
		line->gpu_ns = atomic_load(&used->gpu_ns);
		line->sm_wanted = gpd_tenants_min_sms(atomic_load(&used->sm_wanted),
						      atomic_load(&tenant->devices[d].sm_wanted));
		line->sm_assigned = atomic_load(&used->sm_assigned);
	}
}

static void
fill_session(const struct gpd_report_source *source, struct session *to, uint32_t index)
{
	const struct gpd_ledger *ledger = source->admission->quota->ledger;
	const struct gpd_ledger_session *from = &ledger->sessions[index];
	uint64_t id = atomic_load(&from->id);
	const struct gpd_session_owner *client =
		gpd_session_owner(&source->admission->session_owners, index, id);
	Gpupool__AdminSession *session = &to->message;

	gpupool__admin_session__init(session);
	session->id = id;
	session->tenant = (char *)ledger->tenants[from->tenant].name;
	session->worker = (uint32_t)from->worker;
	session->state = session_get_state(source, id);
	session->priority = atomic_load(&from->priority);
	session->host = (char *)client->host;
	session->user = (char *)client->user;
	session->program = (char *)client->program;
	session->address = (char *)client->address;
	session->credentials = (char *)client->credentials;
	session->pid = client->pid;
	session->started_s = (uint64_t)client->started_s;
	session->pinned = atomic_load(&from->devices[GPD_LEDGER_PINNED].memory);
	fill_counts(&to->counts, &from->counts);
	session->counts = &to->counts;
	fill_session_lines(source, to, from, client->devices);
}

/* Adds the usage of a running session to its tenant and its devices. */
static void
session_add_to_sums(struct buffer *buffer, const struct session *session, struct tenant *tenant)
{
	add_counts(&tenant->counts, &session->counts);
	for (size_t i = 0; i < session->message.n_lines; i++) {
		const Gpupool__AdminLine *line = &session->device_lines.device_lines[i];

		buffer->devices[line->device].sessions++;
		tenant->device_lines.device_lines[line->device].gpu_ns += line->gpu_ns;
	}
}

static int
compare_ids(const void *a, const void *b)
{
	const Gpupool__AdminSession *const *x = a, *const *y = b;

	return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

/* wanted 0: all sessions. */
static void
add_sessions(const struct gpd_report_source *source, struct buffer *buffer, uint64_t wanted)
{
	const struct gpd_ledger *ledger = source->admission->quota->ledger;
	Gpupool__AdminReport *report = &buffer->report;

	report->sessions = buffer->session_list;
	for (const struct gpd_ledger_session *from = NULL;
	     (from = gpd_ledger_next(ledger, from, GPD_LEDGER_ANY_WORKER));) {
		struct session *session = &buffer->sessions[gpd_ledger_index(ledger, from)];

		fill_session(source, session, gpd_ledger_index(ledger, from));
		session_add_to_sums(buffer, session, &buffer->tenants[from->tenant]);
		for (size_t w = 0; w < report->n_workers; w++)
			buffer->workers[w].sessions +=
				buffer->workers[w].pid == session->message.worker;
		if (!wanted || session->message.id == wanted)
			report->sessions[report->n_sessions++] = &session->message;
	}
	qsort(report->sessions, report->n_sessions, sizeof(*report->sessions), compare_ids);
}

/* Devices. */

static void
add_devices(const struct gpd_report_source *source, struct buffer *buffer)
{
	buffer->report.devices = buffer->device_list;
	for (int d = 0; d < source->admission->quota->tenants.device_count; d++) {
		const struct gpd_tenants_device *from =
			&source->admission->quota->tenants.devices[d];
		Gpupool__AdminDevice *device = &buffer->devices[d];

		gpupool__admin_device__init(device);
		buffer->device_list[buffer->report.n_devices++] = device;
		device->ordinal = (uint32_t)d;
		device->name = (char *)from->name;
		device->uuid = (ProtobufCBinaryData){ sizeof(from->uuid), (uint8_t *)from->uuid };
		device->memory_total = from->memory;
		device->contexts_max =
			gpd_tenants_get_places(&source->admission->quota->tenants, d);
		device->multiprocessors = from->multiprocessors;
		device->sick = gpd_device_is_sick(&from->health);
		device->reason = (char *)from->health.reason;
		device->policy = atomic_load(&source->admission->quota->ledger->policies[d]);
	}
}

static void
devices_sum(Gpupool__AdminReport *report)
{
	for (size_t w = 0; w < report->n_workers; w++) {
		const Gpupool__AdminWorker *worker = report->workers[w];

		for (size_t i = 0; i < worker->n_contexts; i++) {
			const Gpupool__AdminContext *context = worker->contexts[i];

			if (context->device >= report->n_devices)
				continue;
			report->devices[context->device]->contexts++;
			report->devices[context->device]->context_memory += context->memory;
		}
	}
	for (size_t t = 0; t < report->n_tenants; t++) {
		const Gpupool__AdminTenant *tenant = report->tenants[t];

		for (size_t d = 0; d < tenant->n_lines; d++) {
			report->devices[d]->memory += tenant->lines[d]->memory;
			report->devices[d]->gpu_ns += tenant->lines[d]->gpu_ns;
		}
	}
}

/* Reports the share of a part; its usage is in the line of its session. */
static void
add_unit(const struct gpd_report_source *source, struct buffer *buffer, const struct gpd_unit *from)
{
	const struct gpd_tenants_device *device =
		&source->admission->quota->tenants.devices[from->device];
	Gpupool__AdminUnit *unit = &buffer->units[buffer->report.n_units];

	gpupool__admin_unit__init(unit);
	buffer->unit_list[buffer->report.n_units++] = unit;
	unit->device = (uint32_t)from->device;
	unit->part = (uint32_t)from->part;
	unit->parts = (uint32_t)from->parts;
	unit->memory_total = device->memory / unit->parts / MEMORY_UNIT * MEMORY_UNIT;
	unit->multiprocessors = device->multiprocessors / unit->parts;
	if (from->parts > 1)
		unit->session = device->part_sessions[from->part];
	else
		unit->memory_total = device->memory;
}

static void
add_units(const struct gpd_report_source *source, struct buffer *buffer)
{
	struct gpd_unit units[GPD_UNITS_MAX];
	int count = gpd_tenants_units(&source->admission->quota->tenants, units);

	buffer->report.units = buffer->unit_list;
	for (int i = 0; i < count; i++)
		add_unit(source, buffer, &units[i]);
}

/* Refused clients. */

static void
add_refusals(const struct gpd_report_source *source, struct buffer *buffer)
{
	const struct gpd_admission *admission = source->admission;

	buffer->report.refusals = buffer->refusal_list;
	for (int i = GPD_AUTH_OK + 1; i < GPD_AUTH_REFUSALS; i++) {
		Gpupool__AdminRefusals *refusals = &buffer->refusals[i];

		gpupool__admin_refusals__init(refusals);
		buffer->refusal_list[buffer->report.n_refusals++] = refusals;
		refusals->reason = (char *)gpd_auth_name((enum gpd_auth_refusal)i);
		refusals->count = admission->authentication.refusals[i];
		if (i == GPD_AUTH_TICKET)
			refusals->count +=
				atomic_load(&source->admission->quota->ledger->lanes_refused);
	}
}

/* Workers. */

static Gpupool__AdminWorker__State
worker_get_state(const struct gpd_worker_process *process)
{
	switch (process->state) {
	case GPD_WORKER_STARTING:
		return GPUPOOL__ADMIN_WORKER__STATE__STARTING;
	case GPD_WORKER_SERVING:
	case GPD_WORKER_BUSY:
	case GPD_WORKER_SPARE:
	case GPD_WORKER_DEDICATED:
		return GPUPOOL__ADMIN_WORKER__STATE__SERVING;
	case GPD_WORKER_LOST:
		return GPUPOOL__ADMIN_WORKER__STATE__LOST;
	default:
		return GPUPOOL__ADMIN_WORKER__STATE__RETIRING;
	}
}

/* Sets the worker's class, and its tenant if it has only one. */
static void
worker_set_class(const struct gpd_report_source *source, const struct gpd_worker_process *process,
		 Gpupool__AdminWorker *worker)
{
	const struct gpd_ledger *ledger = source->admission->quota->ledger;
	const struct gpd_ledger_session *entry;

	worker->tenant = (char *)process->tenant;
	if (process->spare) {
		worker->class_ = (char *)"reserve";
	} else if (gpd_worker_process_is_dedicated(process)) {
		entry = gpd_ledger_next(ledger, NULL, process->pid);
		worker->class_ = (char *)"session";
		if (entry)
			worker->tenant = (char *)ledger->tenants[entry->tenant].name;
	} else {
		worker->class_ = (char *)(process->tenant[0] ? "tenant" : "shared");
	}
}

/* Lists the contexts of the last worker, without one that is being created. */
static void
add_contexts(const struct gpd_worker_process *process, struct buffer *buffer)
{
	size_t index = buffer->report.n_workers - 1;
	Gpupool__AdminWorker *worker = &buffer->workers[index];
	uint32_t contexts = process->facts ? process->contexts & ~process->creating : 0;

	worker->contexts = buffer->contexts[index].list;
	for (uint32_t d = 0; d < GPD_LEDGER_DEVICES; d++) {
		Gpupool__AdminContext *context = &buffer->contexts[index].all[worker->n_contexts];

		if (!(contexts >> d & 1))
			continue;
		gpupool__admin_context__init(context);
		context->device = d;
		context->memory = process->context_bytes[d];
		worker->contexts[worker->n_contexts++] = context;
	}
}

static void
add_workers(const struct gpd_report_source *source, struct buffer *buffer)
{
	buffer->report.workers = buffer->worker_list;
	for (const struct gpd_worker_process *process = source->admission->workers;
	     process && buffer->report.n_workers < GPD_WORKERS_MAX; process = process->next) {
		Gpupool__AdminWorker *worker = &buffer->workers[buffer->report.n_workers];

		gpupool__admin_worker__init(worker);
		buffer->worker_list[buffer->report.n_workers++] = worker;
		worker->pid = (uint32_t)process->pid;
		worker->state = worker_get_state(process);
		worker->hangs = process->heartbeat.hangs;
		worker_set_class(source, process, worker);
		add_contexts(process, buffer);
		buffer->report.workers_ready += process->state == GPD_WORKER_SPARE;
		buffer->report.workers_hanging += process->heartbeat.hangs;
	}
}

/* Programs in quarantine. */

static void
add_quarantine(struct buffer *buffer, const struct gpd_quarantine_entry *from)
{
	Gpupool__AdminReport *report = &buffer->report;
	Gpupool__AdminQuarantine *quarantine = &buffer->quarantines[report->n_quarantines];
	const struct gpd_program *program = &from->program;

	gpupool__admin_quarantine__init(quarantine);
	quarantine->id = from->id;
	quarantine->tenant = (char *)program->tenant;
	quarantine->program = (char *)(from->whole_tenant ? "" : program->name);
	quarantine->user = (char *)(from->whole_tenant ? "" : program->user);
	quarantine->host = (char *)(from->whole_tenant ? "" : program->host);
	quarantine->reason =
		(char *)gpd_quarantine_explain(from, buffer->reasons[report->n_quarantines]);
	quarantine->until_s = (uint64_t)from->until_s;
	buffer->quarantine_list[report->n_quarantines++] = quarantine;
}

static void
add_quarantines(const struct gpd_report_source *source, struct buffer *buffer)
{
	const struct gpd_admission *admission = source->admission;
	const struct gpd_quarantine *quarantine = &admission->quarantine;
	int64_t now_ms = gp_now_ms();

	buffer->report.quarantines = buffer->quarantine_list;
	buffer->report.quarantines_total = quarantine->total;
	for (size_t i = 0; admission->quota->tenants.config->quarantine && i < GPD_QUARANTINE_MAX;
	     i++) {
		const struct gpd_quarantine_entry *entry = &quarantine->entries[i];

		if (entry->state == GPD_QUARANTINE_ACTIVE && entry->until_ms > now_ms)
			add_quarantine(buffer, entry);
	}
}

/* The daemon. */

static void
add_facts(const struct gpd_report_source *source, struct buffer *buffer)
{
	const struct gpd_report_facts *facts = &source->facts;
	const struct gpd_config *config = source->admission->quota->tenants.config;
	const struct gp_crl *crl = source->admission->authentication.crl_state.crl;
	Gpupool__AdminReport *report = &buffer->report;
	struct gp_tls *tls = gpd_tls_get();

	report->addresses = buffer->addresses;
	for (int i = 0; i < facts->address_count; i++)
		buffer->addresses[report->n_addresses++] = (char *)facts->addresses[i];
	report->user = (char *)facts->user;
	report->metrics = (char *)facts->metrics;
	report->no_cgroups = (char *)facts->no_cgroups;
	if (config->file)
		report->config = config->file;
	if (tls && gp_tls_get_not_after(tls) != INT64_MAX)
		report->certificate_until_s = (uint64_t)gp_tls_get_not_after(tls);
	gp_tls_unref(tls);
	if (crl && gp_crl_get_next_update(crl) != INT64_MAX)
		report->crl_until_s = (uint64_t)gp_crl_get_next_update(crl);
	if (source->usage) {
		report->usage = (char *)source->usage->path;
		report->usage_lost = source->usage->lost;
	}
	report->workers_lost = source->admission->workers_lost;
}

/* Adds the tokens that expire first, sorted by expiry. */
static void
add_tokens(const struct gpd_report_source *source, struct buffer *buffer)
{
	const struct gpd_tokens *tokens = &source->admission->authentication.store.tokens;
	Gpupool__AdminReport *report = &buffer->report;
	int64_t now_s = (int64_t)time(NULL);

	report->tokens = buffer->token_list;
	for (size_t i = 0; i < TOKENS_MAX; i++)
		buffer->token_list[i] = &buffer->tokens[i];
	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];
		size_t at = report->n_tokens;

		if (token->expires_s == INT64_MAX || !gpd_token_is_valid(token, now_s))
			continue;
		while (at && buffer->tokens[at - 1].until_s > (uint64_t)token->expires_s)
			at--;
		if (at == TOKENS_MAX)
			continue;
		if (report->n_tokens < TOKENS_MAX)
			report->n_tokens++;
		memmove(&buffer->tokens[at + 1], &buffer->tokens[at],
			(report->n_tokens - at - 1) * sizeof(buffer->tokens[0]));
		gpupool__admin_token__init(&buffer->tokens[at]);
		buffer->tokens[at].id = (char *)token->id;
		buffer->tokens[at].tenant = (char *)token->tenant;
		buffer->tokens[at].until_s = (uint64_t)token->expires_s;
	}
}

Gpupool__AdminReport *
gpd_report_create(const struct gpd_report_source *source, uint64_t session)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	Gpupool__AdminReport *report = &buffer->report;

	if (!buffer)
		return NULL;
	gpupool__admin_report__init(report);
	report->version = (char *)GPD_VERSION;
	report->pid = (uint32_t)getpid();
	report->started_s = (uint64_t)source->started_s;
	report->draining = source->admission->draining;
	report->sessions_max = (uint32_t)gpd_admission_sessions_max(source->admission);
	report->software = source->admission->quota->tenants.software;
	report->driver_version = source->admission->quota->tenants.driver_version;
	report->waiting = count_waiting(source->admission);
	add_facts(source, buffer);
	add_tokens(source, buffer);
	add_workers(source, buffer);
	add_quarantines(source, buffer);
	add_devices(source, buffer);
	add_units(source, buffer);
	add_refusals(source, buffer);
	add_tenants(source, buffer);
	add_sessions(source, buffer, session);
	devices_sum(report);
	return report;
}

void
gpd_report_free(Gpupool__AdminReport *report)
{
	free(report);
}
