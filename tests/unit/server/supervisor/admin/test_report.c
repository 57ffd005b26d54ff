/* SPDX-License-Identifier: Apache-2.0 */
/* The report sums up the ledger under the names of the session owners. */
#include "server/supervisor/admin/report.h"
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

static struct gpd_admission admission;
static struct gpd_quota quota;
static struct gpd_report_source source;
static struct gpd_ledger *ledger;

static void
set_devices(int count)
{
	int32_t attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT + 1] = { 0 };
	Gpupool__Welcome facts = GPUPOOL__WELCOME__INIT;
	Gpupool__Device devices[4], *list[4];

	attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 132;
	for (int d = 0; d < count; d++) {
		gpupool__device__init(&devices[d]);
		devices[d].ordinal = d;
		devices[d].name = (char *)"a \"GPU\"\x01";
		devices[d].total_memory = (uint64_t)80 << 30;
		devices[d].attributes = attributes;
		devices[d].n_attributes = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT + 1;
		list[d] = &devices[d];
	}
	facts.devices = list;
	facts.n_devices = (size_t)count;
	facts.driver_version = 13000;
	gpd_tenants_set_devices(&quota.tenants, &facts);
}

static int
set_up(void **state)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_quota_init(&quota, NULL, error) || gpd_admission_init(&admission, &quota, 77, 0))
		return -1;
	ledger = quota.ledger;
	gpd_ledger_add_tenant(ledger, 1, "other");
	source = (struct gpd_report_source){
		.admission = &admission,
		.started_s = 5,
	};
	set_devices(2);
	return 0;
}

static int
tear_down(void **state)
{
	gpd_admission_fini(&admission);
	gpd_quota_fini(&quota);
	return 0;
}

/* A session with this usage of both devices, which sees all devices. */
static struct gpd_ledger_session *
open_session(uint64_t id, uint32_t tenant, uint64_t amount)
{
	struct gpd_ledger_session *session = gpd_ledger_open(ledger, id, tenant, 100);
	struct gpd_assignment assignment = { .tenant = tenant,
					     .count = 2,
					     .units = { { .device = 0 }, { .device = 1 } } };
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;

	hello.host = (char *)"host";
	hello.user = (char *)"user";
	hello.program = (char *)"program";
	hello.pid = 42;
	assert_non_null(session);
	gpd_session_owners_set(&admission.session_owners, gpd_ledger_index(ledger, session), id,
			       &hello, &assignment, "tcp://x");
	for (int d = 0; d < 2; d++) {
		assert_true(gpd_ledger_charge(ledger, session, d, amount));
		session->devices[d].gpu_ns = amount;
	}
	gpd_ledger_count(&session->counts.launches, amount);
	gpd_ledger_count(&session->counts.copied_in, 2 * amount);
	gpd_ledger_count(&session->counts.waited_ns, 3 * amount);
	return session;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(tenants_and_devices_are_the_sums_of_sessions_that_live_and_have_lived)
{
	struct gpd_ledger_session *gone = open_session(1, 0, 10);
	Gpupool__AdminReport *report;

	(void)open_session(2, 0, 100);
	(void)open_session(3, 1, 1000);
	gpd_ledger_close(ledger, gone);
	report = gpd_report_create(&source, 0);
	assert_non_null(report);
	assert_int_equal(report->n_tenants, 2);
	assert_string_equal(report->tenants[0]->name, "default");
	assert_int_equal(report->tenants[0]->sessions, 1);
	assert_int_equal(report->tenants[0]->sessions_total, 2);
	assert_int_equal(report->tenants[0]->counts->launches, 110);
	assert_int_equal(report->tenants[0]->counts->copied_in, 220);
	assert_int_equal(report->tenants[0]->counts->waited_ns, 330);
	assert_int_equal(report->tenants[0]->lines[1]->gpu_ns, 110);
	assert_int_equal(report->tenants[0]->lines[1]->memory, 100);
	assert_int_equal(report->tenants[1]->counts->launches, 1000);
	assert_int_equal(report->n_devices, 2);
	assert_int_equal(report->devices[0]->gpu_ns, 1110);
	assert_int_equal(report->devices[0]->memory, 1100);
	assert_int_equal(report->devices[0]->sessions, 2);
	assert_int_equal(report->devices[0]->multiprocessors, 132);
	gpd_report_free(report);
}

TEST(a_report_of_one_session_has_the_sums_of_all)
{
	Gpupool__AdminReport *report;

	(void)open_session(2, 0, 100);
	(void)open_session(3, 0, 1000);
	report = gpd_report_create(&source, 3);
	assert_int_equal(report->n_sessions, 1);
	assert_int_equal(report->sessions[0]->id, 3);
	assert_int_equal(report->tenants[0]->counts->launches, 1100);
	gpd_report_free(report);
	report = gpd_report_create(&source, 4);
	assert_int_equal(report->n_sessions, 0);
	gpd_report_free(report);
}

TEST(sessions_are_told_by_their_clients_and_in_their_order)
{
	struct gpd_ledger_session *first = open_session(1, 0, 1), *last;
	Gpupool__AdminReport *report;

	(void)open_session(2, 0, 1);
	gpd_ledger_close(ledger, first);
	/* It gets the place of the first one. */
	last = open_session(3, 1, 1);
	last->devices[1].sm_wanted = 7;
	ledger->tenants[1].devices[0].sm_wanted = ledger->tenants[1].devices[1].sm_wanted = 40;
	report = gpd_report_create(&source, 0);
	assert_int_equal(report->n_sessions, 2);
	assert_int_equal(report->sessions[0]->id, 2);
	assert_int_equal(report->sessions[1]->id, 3);
	assert_string_equal(report->sessions[1]->tenant, "other");
	assert_string_equal(report->sessions[1]->program, "program");
	assert_string_equal(report->sessions[1]->address, "tcp://x");
	assert_int_equal(report->sessions[1]->pid, 42);
	assert_int_equal(report->sessions[1]->state, GPUPOOL__ADMIN_SESSION__STATE__ENDING);
	assert_int_equal(report->sessions[1]->lines[0]->sm_wanted, 40);
	assert_int_equal(report->sessions[1]->lines[1]->sm_wanted, 7);
	gpd_report_free(report);
}

TEST(a_session_has_lines_of_the_devices_that_it_sees_only)
{
	struct gpd_ledger_session *session = gpd_ledger_open(ledger, 9, 0, 100);
	struct gpd_assignment assignment = { .count = 1, .units = { { .device = 1 } } };
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	Gpupool__AdminReport *report;

	gpd_session_owners_set(&admission.session_owners, gpd_ledger_index(ledger, session), 9,
			       &hello, &assignment, "");
	report = gpd_report_create(&source, 0);
	assert_int_equal(report->sessions[0]->n_lines, 1);
	assert_int_equal(report->sessions[0]->lines[0]->device, 1);
	assert_int_equal(report->devices[0]->sessions, 0);
	assert_int_equal(report->devices[1]->sessions, 1);
	gpd_report_free(report);
}

TEST(what_clients_say_is_made_fit_for_terminals)
{
	struct gpd_ledger_session *session = gpd_ledger_open(ledger, 9, 0, 100);
	struct gpd_assignment assignment = { .count = 0 };
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	Gpupool__AdminReport *report;
	char longest[300];

	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	hello.user = longest;
	hello.program = (char *)"a\033[2Jb\nc\x80";
	gpd_session_owners_set(&admission.session_owners, gpd_ledger_index(ledger, session), 9,
			       &hello, &assignment, "");
	report = gpd_report_create(&source, 0);
	assert_string_equal(report->sessions[0]->program, "a\\x1b[2Jb\\x0ac\\x80");
	assert_int_equal(strlen(report->sessions[0]->user), 63);
	assert_string_equal(report->devices[0]->name, "a \"GPU\"\\x01");
	gpd_report_free(report);
}

TEST(workers_are_told_with_their_state_and_sessions)
{
	struct gpd_worker_process lost = { .pid = 102, .state = GPD_WORKER_LOST };
	struct gpd_worker_process retiring = { .next = &lost,
					       .pid = 101,
					       .state = GPD_WORKER_RETIRED };
	Gpupool__Welcome facts = GPUPOOL__WELCOME__INIT;
	struct gpd_worker_process serving = { .next = &retiring,
					      .pid = 100,
					      .state = GPD_WORKER_SERVING,
					      .facts = &facts,
					      .contexts = 3,
					      .creating = 1,
					      .context_bytes = { 0, 500 } };
	Gpupool__AdminReport *report;

	admission.workers = &serving;
	(void)open_session(1, 0, 1);
	report = gpd_report_create(&source, 0);
	assert_int_equal(report->n_workers, 3);
	assert_int_equal(report->workers[0]->state, GPUPOOL__ADMIN_WORKER__STATE__SERVING);
	assert_int_equal(report->workers[0]->sessions, 1);
	assert_int_equal(report->workers[1]->state, GPUPOOL__ADMIN_WORKER__STATE__RETIRING);
	assert_int_equal(report->workers[2]->state, GPUPOOL__ADMIN_WORKER__STATE__LOST);
	assert_int_equal(report->workers[2]->sessions, 0);
	assert_int_equal(report->workers[0]->n_contexts, 1);
	assert_int_equal(report->workers[0]->contexts[0]->device, 1);
	assert_int_equal(report->workers[0]->contexts[0]->memory, 500);
	assert_int_equal(report->workers[1]->n_contexts, 0);
	assert_int_equal(report->sessions_max, 77);
	assert_int_equal(report->driver_version, 13000);
	gpd_report_free(report);
}

TEST(the_largest_report_has_room_in_a_reply)
{
	Gpupool__AdminReply reply = GPUPOOL__ADMIN_REPLY__INIT;
	uint8_t *bytes;
	size_t size;

	for (uint64_t id = 1; id <= GPD_LEDGER_SESSIONS; id++)
		(void)open_session(id, 0, 1000000);
	reply.report = gpd_report_create(&source, 0);
	assert_int_equal(reply.report->n_sessions, GPD_LEDGER_SESSIONS);
	bytes = gp_admin_pack_reply(&reply, &size);
	assert_non_null(bytes);
	/* With 32 devices instead of two. */
	assert_true(16 * size < GP_ADMIN_REPLY_MAX);
	free(bytes);
	gpd_report_free(reply.report);
}

UNIT_TEST_MAIN(NULL, NULL)
