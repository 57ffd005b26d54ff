/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/report.h"

#include "server/supervisor/workers/child.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNITS_MAX (GPD_LEDGER_DEVICES * GPD_VIRTUAL_MAX)
/* Quotas of memory are multiples of it. */
#define MEMORY_UNIT ((uint64_t)2 << 20)

/* Everything in the report is allocated as protobuf-c's own decoder would; failed is set once a
 * piece has found no memory, which leaves the report incomplete but free of holes. */
struct builder {
	const struct gpd_report_source *source;
	Gpupool__AdminReport *report;
	bool failed;
};

static char *
keep_text(struct builder *b, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		b->failed = true;
	return copy ? copy : (char *)protobuf_c_empty_string;
}

static void *
keep(struct builder *b, size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		b->failed = true;
	return memory;
}

/* Room for so many pointers; their number is raised as they are filled in. */
static void *
keep_list(struct builder *b, size_t count)
{
	return keep(b, (count ? count : 1) * sizeof(void *));
}

static const struct gpd_ledger *
ledger_of(const struct builder *b)
{
	return b->source->quota->ledger;
}

/* clang-format off */
#define EACH_COUNT(DO) \
	DO(launches) DO(copies) DO(copied_in) DO(copied_out) DO(refusals) DO(waited_ns) DO(throttled_ns)
#define COPY(name) copy->name = atomic_load(&counts->name);
#define ADD(name) to->name += from->name;
/* clang-format on */

static Gpupool__AdminCounts *
keep_counts(struct builder *b, const struct gpd_ledger_counts *counts)
{
	Gpupool__AdminCounts *copy = keep(b, sizeof(*copy));

	if (!copy)
		return NULL;
	gpupool__admin_counts__init(copy);
	EACH_COUNT(COPY)
	return copy;
}

static void
add_counts(Gpupool__AdminCounts *to, const Gpupool__AdminCounts *from)
{
	EACH_COUNT(ADD)
}

static Gpupool__AdminLine *
keep_line(struct builder *b, Gpupool__AdminLine ***lines, size_t *count, int device)
{
	Gpupool__AdminLine *line = *lines ? keep(b, sizeof(*line)) : NULL;

	if (!line)
		return NULL;
	gpupool__admin_line__init(line);
	line->device = (uint32_t)device;
	(*lines)[(*count)++] = line;
	return line;
}

/* Tenants. */

static void
add_tenant_lines(struct builder *b, Gpupool__AdminTenant *tenant,
		 const struct gpd_ledger_tenant *from)
{
	int devices = b->source->roster->device_count;

	tenant->lines = keep_list(b, (size_t)devices);
	for (int d = 0; d < devices; d++) {
		const struct gpd_ledger_tenant_line *used = &from->devices[d];
		Gpupool__AdminLine *line = keep_line(b, &tenant->lines, &tenant->n_lines, d);

		if (!line)
			return;
		line->memory = atomic_load(&used->memory);
		line->memory_max = atomic_load(&used->memory_max);
		line->gpu_ns = atomic_load(&used->gpu_ns);
		line->sm_wanted = atomic_load(&used->sm_wanted);
		line->weight = atomic_load(&used->weight);
		line->limit = atomic_load(&used->limit);
		line->time_share = atomic_load(&used->time_share);
	}
}

static void
add_tenant(struct builder *b, const struct gpd_ledger_tenant *from)
{
	Gpupool__AdminTenant *tenant = keep(b, sizeof(*tenant));

	if (!tenant)
		return;
	gpupool__admin_tenant__init(tenant);
	b->report->tenants[b->report->n_tenants++] = tenant;
	tenant->name = keep_text(b, from->name);
	tenant->sessions = atomic_load(&from->sessions);
	tenant->sessions_total = atomic_load(&from->sessions_total);
	tenant->priority = atomic_load(&from->priority);
	tenant->bandwidth_max = atomic_load(&from->bandwidth_max);
	tenant->counts = keep_counts(b, &from->ended);
	add_tenant_lines(b, tenant, from);
}

static void
add_tenants(struct builder *b, Gpupool__AdminTenant *by_index[GPD_LEDGER_TENANTS])
{
	b->report->tenants = keep_list(b, GPD_LEDGER_TENANTS);
	for (int i = 0; b->report->tenants && i < GPD_LEDGER_TENANTS; i++) {
		const struct gpd_ledger_tenant *from = &ledger_of(b)->tenants[i];
		size_t before = b->report->n_tenants;

		if (from->name[0])
			add_tenant(b, from);
		if (b->report->n_tenants > before)
			by_index[i] = b->report->tenants[before];
	}
}

/* Sessions. */

static Gpupool__AdminSession__State
state_of(const struct builder *b, uint64_t id)
{
	for (const struct gpd_peer *p = b->source->admission->peers; p; p = p->next) {
		if (p->session == id && (p->worker || p->state == GPD_PEER_STARTING))
			return p->state == GPD_PEER_RUNNING
				       ? GPUPOOL__ADMIN_SESSION__STATE__RUNNING
				       : GPUPOOL__ADMIN_SESSION__STATE__OPENING;
	}
	return GPUPOOL__ADMIN_SESSION__STATE__ENDING;
}

/* Of two limits, of which 0 is none. */
static uint32_t
smaller(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
add_session_lines(struct builder *b, Gpupool__AdminSession *session,
		  const struct gpd_ledger_session *from, uint32_t seen)
{
	const struct gpd_ledger_tenant *tenant = &ledger_of(b)->tenants[from->tenant];
	int devices = b->source->roster->device_count;

	session->lines = keep_list(b, (size_t)devices);
	for (int d = 0; d < devices; d++) {
		const struct gpd_ledger_line *used = &from->devices[d];
		Gpupool__AdminLine *line;

		if (!(seen >> d & 1))
			continue;
		line = keep_line(b, &session->lines, &session->n_lines, d);
		if (!line)
			return;
		line->memory = atomic_load(&used->memory);
		line->memory_max = atomic_load(&used->memory_max);
		line->memory_peak = atomic_load(&used->memory_peak);
		line->gpu_ns = atomic_load(&used->gpu_ns);
		line->sm_wanted = smaller(atomic_load(&used->sm_wanted),
					  atomic_load(&tenant->devices[d].sm_wanted));
		line->sm_assigned = atomic_load(&used->sm_assigned);
	}
}

static void
describe_client(struct builder *b, Gpupool__AdminSession *session,
		const struct gpd_roster_client *client)
{
	session->host = keep_text(b, client->host);
	session->user = keep_text(b, client->user);
	session->program = keep_text(b, client->program);
	session->address = keep_text(b, client->address);
	session->credentials = keep_text(b, client->credentials);
	session->pid = client->pid;
	session->started_s = (uint64_t)client->started_s;
}

static Gpupool__AdminSession *
create_session(struct builder *b, const struct gpd_ledger_session *from)
{
	uint32_t index = gpd_ledger_index(ledger_of(b), from);
	uint64_t id = atomic_load(&from->id);
	const struct gpd_roster_client *client = gpd_roster_client(b->source->roster, index, id);
	Gpupool__AdminSession *session = keep(b, sizeof(*session));

	if (!session)
		return NULL;
	gpupool__admin_session__init(session);
	session->id = id;
	session->tenant = keep_text(b, ledger_of(b)->tenants[from->tenant].name);
	session->worker = (uint32_t)from->worker;
	session->state = state_of(b, id);
	session->priority = atomic_load(&from->priority);
	session->counts = keep_counts(b, &from->counts);
	describe_client(b, session, client);
	add_session_lines(b, session, from, client->devices);
	return session;
}

/* What a live session has used counts for its tenant and its devices. */
static void
sum_up(struct builder *b, const Gpupool__AdminSession *session, Gpupool__AdminTenant *tenant)
{
	if (session->counts && tenant && tenant->counts)
		add_counts(tenant->counts, session->counts);
	for (size_t i = 0; i < session->n_lines; i++) {
		const Gpupool__AdminLine *line = session->lines[i];

		b->report->devices[line->device]->sessions++;
		if (tenant && line->device < tenant->n_lines)
			tenant->lines[line->device]->gpu_ns += line->gpu_ns;
	}
}

static int
by_id(const void *a, const void *b)
{
	const Gpupool__AdminSession *const *x = a, *const *y = b;

	return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

static void
add_sessions(struct builder *b, Gpupool__AdminTenant *const by_index[GPD_LEDGER_TENANTS],
	     uint64_t wanted)
{
	const struct gpd_ledger *ledger = ledger_of(b);
	Gpupool__AdminReport *report = b->report;

	report->sessions = keep_list(b, GPD_LEDGER_SESSIONS);
	for (int i = 0; report->sessions && i < GPD_LEDGER_SESSIONS; i++) {
		const struct gpd_ledger_session *from = &ledger->sessions[i];
		Gpupool__AdminSession *session;

		if (atomic_load(&from->id) == 0)
			continue;
		session = create_session(b, from);
		if (!session)
			return;
		sum_up(b, session, by_index[from->tenant]);
		if (wanted && session->id != wanted)
			gpupool__admin_session__free_unpacked(session, NULL);
		else
			report->sessions[report->n_sessions++] = session;
	}
	if (report->n_sessions)
		qsort(report->sessions, report->n_sessions, sizeof(*report->sessions), by_id);
}

/* Devices. */

static void
add_device(struct builder *b, int ordinal)
{
	const struct gpd_roster_device *from = &b->source->roster->devices[ordinal];
	Gpupool__AdminDevice *device = keep(b, sizeof(*device));

	if (!device)
		return;
	gpupool__admin_device__init(device);
	b->report->devices[b->report->n_devices++] = device;
	device->ordinal = (uint32_t)ordinal;
	device->name = keep_text(b, from->name);
	device->uuid.data = keep(b, sizeof(from->uuid));
	if (device->uuid.data) {
		device->uuid.len = sizeof(from->uuid);
		memcpy(device->uuid.data, from->uuid, sizeof(from->uuid));
	}
	device->memory_total = from->memory;
	device->multiprocessors = from->multiprocessors;
	device->policy = atomic_load(&ledger_of(b)->policies[ordinal]);
}

static void
add_devices(struct builder *b)
{
	int count = b->source->roster->device_count;

	b->report->devices = keep_list(b, (size_t)count);
	for (int d = 0; b->report->devices && d < count; d++)
		add_device(b, d);
}

static void
sum_up_devices(Gpupool__AdminReport *report)
{
	for (size_t t = 0; t < report->n_tenants; t++) {
		const Gpupool__AdminTenant *tenant = report->tenants[t];

		for (size_t d = 0; d < tenant->n_lines; d++) {
			report->devices[d]->memory += tenant->lines[d]->memory;
			report->devices[d]->gpu_ns += tenant->lines[d]->gpu_ns;
		}
	}
}

/* Of a part, its share; what a session has of it is in the session's line. */
static void
add_unit(struct builder *b, const struct gpd_unit *from)
{
	const struct gpd_tenants *tenants = &b->source->quota->tenants;
	const struct gpd_roster_device *device = &b->source->roster->devices[from->device];
	Gpupool__AdminUnit *unit = keep(b, sizeof(*unit));

	if (!unit)
		return;
	gpupool__admin_unit__init(unit);
	b->report->units[b->report->n_units++] = unit;
	unit->device = (uint32_t)from->device;
	unit->part = (uint32_t)from->part;
	unit->parts = (uint32_t)from->parts;
	unit->memory_total = device->memory / unit->parts / MEMORY_UNIT * MEMORY_UNIT;
	unit->multiprocessors = device->multiprocessors / unit->parts;
	if (from->parts > 1)
		unit->session = tenants->devices[from->device].holders[from->part];
	else
		unit->memory_total = device->memory;
}

static void
add_units(struct builder *b)
{
	struct gpd_unit units[UNITS_MAX];
	int count = gpd_tenants_units(&b->source->quota->tenants, units, UNITS_MAX);

	b->report->units = keep_list(b, (size_t)count);
	for (int i = 0; b->report->units && i < count; i++) {
		if (units[i].device < b->source->roster->device_count)
			add_unit(b, &units[i]);
	}
}

/* Clients that were not let in. */

static void
add_refusals(struct builder *b)
{
	b->report->refusals = keep_list(b, GPD_AUTH_REFUSALS);
	for (int i = GPD_AUTH_LET_IN + 1; b->report->refusals && i < GPD_AUTH_REFUSALS; i++) {
		Gpupool__AdminRefusals *refusals = keep(b, sizeof(*refusals));

		if (!refusals)
			return;
		gpupool__admin_refusals__init(refusals);
		b->report->refusals[b->report->n_refusals++] = refusals;
		refusals->reason = keep_text(b, gpd_auth_name((enum gpd_auth_refusal)i));
		refusals->count = b->source->admission->gate.refusals[i];
		if (i == GPD_AUTH_TICKET)
			refusals->count +=
				atomic_load(&b->source->admission->quota->ledger->lanes_refused);
	}
}

/* Workers. */

static Gpupool__AdminWorker__State
state_of_worker(const struct gpd_child *child)
{
	switch (child->state) {
	case GPD_CHILD_STARTING:
		return GPUPOOL__ADMIN_WORKER__STATE__STARTING;
	case GPD_CHILD_SERVING:
	case GPD_CHILD_BUSY:
	case GPD_CHILD_SPARE:
	case GPD_CHILD_OWN:
		return GPUPOOL__ADMIN_WORKER__STATE__SERVING;
	case GPD_CHILD_LOST:
		return GPUPOOL__ADMIN_WORKER__STATE__LOST;
	default:
		return GPUPOOL__ADMIN_WORKER__STATE__RETIRING;
	}
}

static void
add_workers(struct builder *b)
{
	size_t count = 0;

	for (const struct gpd_child *child = *b->source->children; child; child = child->next)
		count++;
	b->report->workers = keep_list(b, count);
	for (const struct gpd_child *child = *b->source->children; child && b->report->workers;
	     child = child->next) {
		Gpupool__AdminWorker *worker = keep(b, sizeof(*worker));

		if (!worker)
			return;
		gpupool__admin_worker__init(worker);
		worker->pid = (uint32_t)child->pid;
		worker->state = state_of_worker(child);
		b->report->workers[b->report->n_workers++] = worker;
	}
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		const struct gpd_ledger_session *session = &ledger_of(b)->sessions[i];

		for (size_t w = 0; atomic_load(&session->id) && w < b->report->n_workers; w++)
			b->report->workers[w]->sessions +=
				b->report->workers[w]->pid == (uint32_t)session->worker;
	}
}

Gpupool__AdminReport *
gpd_report_create(const struct gpd_report_source *source, uint64_t session)
{
	Gpupool__AdminTenant *by_index[GPD_LEDGER_TENANTS] = { NULL };
	struct builder b = { .source = source, .report = malloc(sizeof(*b.report)) };

	if (!b.report)
		return NULL;
	gpupool__admin_report__init(b.report);
	b.report->version = keep_text(&b, GPD_VERSION);
	b.report->pid = (uint32_t)getpid();
	b.report->started_s = (uint64_t)source->started_s;
	b.report->draining = source->admission->draining;
	b.report->sessions_max = (uint32_t)gpd_admission_sessions_max(source->admission);
	b.report->software = source->roster->software;
	b.report->driver_version = source->roster->driver_version;
	for (const struct gpd_peer *p = source->admission->peers; p; p = p->next)
		b.report->waiting += p->state == GPD_PEER_QUEUED;
	add_workers(&b);
	add_devices(&b);
	add_units(&b);
	add_refusals(&b);
	if (!b.failed)
		add_tenants(&b, by_index);
	if (!b.failed)
		add_sessions(&b, by_index, session);
	if (b.failed) {
		gpd_report_free(b.report);
		return NULL;
	}
	sum_up_devices(b.report);
	return b.report;
}

void
gpd_report_free(Gpupool__AdminReport *report)
{
	if (report)
		gpupool__admin_report__free_unpacked(report, NULL);
}
