/* SPDX-License-Identifier: Apache-2.0 */
/* worker list, worker replace. */
#include "ctl/command.h"
#include "ctl/value.h"

#include <string.h>

/* Adds the memory of all contexts of the worker, and of each, such as "0: 518 MiB, 1: 520 MiB". */
static void
add_contexts(struct ctl_table *table, const Gpupool__AdminWorker *worker)
{
	char text[1024] = "", memory[CTL_VALUE_MAX];
	uint64_t sum = 0;

	for (size_t i = 0; i < worker->n_contexts; i++) {
		const Gpupool__AdminContext *context = worker->contexts[i];

		sum += context->memory;
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u: %s",
			       i ? ", " : "", context->device,
			       ctl_format_bytes(context->memory, memory));
	}
	ctl_table_number(table, sum);
	ctl_table_text(table, *text ? text : NULL);
}

static int
worker_list(const struct ctl *ctl)
{
	static const char *const states[] = { "starting", "serving", "retiring", "lost" };
	static const struct ctl_column columns[] = {
		{ "PID", "pid", CTL_NUMBER },
		{ "STATE", "state", CTL_TEXT },
		{ "SESSIONS", "sessions", CTL_NUMBER },
		{ "CLASS", "class", CTL_TEXT },
		{ "TENANT", "tenant", CTL_TEXT },
		{ "CONTEXT MEMORY", "context_memory_bytes", CTL_BYTES },
		{ "BY GPU", "context_memory_by_gpu", CTL_TEXT }
	};
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	table.has_old_keys = true;
	for (size_t i = 0; i < reply->report->n_workers; i++) {
		const Gpupool__AdminWorker *worker = reply->report->workers[i];

		ctl_table_number(&table, worker->pid);
		ctl_table_text(&table, worker->hangs ? "hanging"
				       : (size_t)worker->state < COUNT(states)
					       ? states[worker->state]
					       : "?");
		ctl_table_number(&table, worker->sessions);
		ctl_table_text(&table, worker->class_);
		ctl_table_text(&table, worker->tenant);
		add_contexts(&table, worker);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
worker_replace(const struct ctl *ctl, const char *pid, bool terminate)
{
	Gpupool__AdminRetire retire = GPUPOOL__ADMIN_RETIRE__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	uint64_t number;

	if (!ctl_parse_number(pid, 1, UINT32_MAX, &number))
		return ctl_fail("invalid worker \"%s\": use a PID of gpupoolctl worker list", pid);
	retire.pid = (uint32_t)number;
	retire.terminate = terminate;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RETIRE;
	request.retire = &retire;
	return ctl_request_status(ctl, &request, terminate ? CTL_NO_TIMEOUT : CTL_TIMEOUT_MS);
}

int
ctl_worker(const struct ctl *ctl, int count, char **argv)
{
	if (count == 1 && strcmp(argv[0], "list") == 0)
		return worker_list(ctl);
	if (count == 2 && strcmp(argv[0], "replace") == 0)
		return worker_replace(ctl, argv[1], false);
	if (count == 3 && strcmp(argv[0], "replace") == 0 && strcmp(argv[2], "--terminate") == 0)
		return worker_replace(ctl, argv[1], true);
	return ctl_unknown("worker", count, argv, "worker list | replace PID [--terminate]");
}
