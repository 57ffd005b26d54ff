/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of nvidia-cuda-mps-control, with answers of the same shape: a server is a worker, a
 * client's ID is its session's.  Limits that are set hold for clients to come, as in MPS.
 */
#include "ctl/command.h"
#include "ctl/value.h"

#include <string.h>
#include <strings.h>

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

static const Gpupool__AdminWorker *
find_worker(const Gpupool__AdminReport *report, const char *pid)
{
	uint64_t number;

	for (size_t i = 0; ctl_parse_number(pid, 1, UINT32_MAX, &number) && i < report->n_workers;
	     i++) {
		if (report->workers[i]->pid == number)
			return report->workers[i];
	}
	ctl_fail("there is no server %s, see get_server_list", pid);
	return NULL;
}

/* A report, in which this server is unless pid is NULL. */
static int
ask(const struct ctl *ctl, const char *pid, Gpupool__AdminReply **reply_p)
{
	if (ctl_ask_report(ctl, 0, reply_p))
		return -1;
	if (!pid || find_worker((*reply_p)->report, pid))
		return 0;
	gp_admin_free_reply(*reply_p);
	return -1;
}

static bool
is_of(const Gpupool__AdminSession *session, const char *pid)
{
	uint64_t number;

	return !pid || (ctl_parse_number(pid, 1, UINT32_MAX, &number) && session->worker == number);
}

/* Answers: for people as MPS says them, for programs as a table like any other. */

static void
answer(const struct ctl *ctl, const struct ctl_column *column, uint64_t number, const char *text)
{
	struct ctl_table table;

	if (ctl->format == CTL_FORMAT_TABLE) {
		printf("%s\n", text);
		return;
	}
	ctl_table_init(&table, column, 1);
	if (column->kind == CTL_TEXT)
		ctl_table_text(&table, text);
	else
		ctl_table_number(&table, number);
	ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
}

/* A number in each line. */
static void
answer_list(const struct ctl *ctl, struct ctl_table *table)
{
	for (size_t i = 0; ctl->format == CTL_FORMAT_TABLE && i < table->cell_count; i++)
		printf("%llu\n", (unsigned long long)table->cells[i].number);
	if (ctl->format != CTL_FORMAT_TABLE)
		ctl_table_print(table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(table);
}

/* Servers. */

static int
get_server_list(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column column = { "SERVER", "server", CTL_NUMBER };
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count)
		return ctl_usage("get_server_list");
	if (ask(ctl, NULL, &reply))
		return -1;
	ctl_table_init(&table, &column, 1);
	for (size_t i = 0; i < reply->report->n_workers; i++)
		ctl_table_number(&table, reply->report->workers[i]->pid);
	answer_list(ctl, &table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
get_server_status(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column column = { "STATUS", "status", CTL_TEXT };
	Gpupool__AdminReply *reply;
	const char *text = "ACTIVE";

	if (count != 1)
		return ctl_usage("get_server_status PID");
	if (ask(ctl, words[0], &reply))
		return -1;
	switch (find_worker(reply->report, words[0])->state) {
	case GPUPOOL__ADMIN_WORKER__STATE__STARTING:
		text = "INITIALIZING";
		break;
	case GPUPOOL__ADMIN_WORKER__STATE__LOST:
		text = "FAULT";
		break;
	default:
		break;
	}
	answer(ctl, &column, 0, text);
	gp_admin_free_reply(reply);
	return 0;
}

/* One is always there or about to be: nothing has to be started, and whose it is cannot be chosen.
 */
static int
start_server(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminReply *reply;
	uint64_t uid;
	size_t workers;

	if (count != 2 || strcmp(words[0], "-uid") != 0 ||
	    !ctl_parse_number(words[1], 0, UINT32_MAX, &uid))
		return ctl_usage("start_server -uid UID");
	if (ask(ctl, NULL, &reply))
		return -1;
	workers = reply->report->n_workers;
	gp_admin_free_reply(reply);
	return workers ? 0 : ctl_fail("no server can be started at the moment");
}

static int
shutdown_server(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminRetire retire = GPUPOOL__ADMIN_RETIRE__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	uint64_t pid;

	if (count < 1 || count > 2 || (count == 2 && strcmp(words[1], "-f") != 0))
		return ctl_usage("shutdown_server PID [-f]");
	if (!ctl_parse_number(words[0], 1, UINT32_MAX, &pid))
		return ctl_fail("there is no server %s, see get_server_list", words[0]);
	retire.pid = (uint32_t)pid;
	retire.terminate = count == 2;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RETIRE;
	request.retire = &retire;
	return ctl_order(ctl, &request, count == 2 ? CTL_FOREVER : CTL_PATIENCE_MS);
}

/* Clients. */

static int
get_client_list(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column column = { "ID", "id", CTL_NUMBER };
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count != 1)
		return ctl_usage("get_client_list PID");
	if (ask(ctl, words[0], &reply))
		return -1;
	ctl_table_init(&table, &column, 1);
	for (size_t i = 0; i < reply->report->n_sessions; i++) {
		if (is_of(reply->report->sessions[i], words[0]))
			ctl_table_number(&table, reply->report->sessions[i]->id);
	}
	answer_list(ctl, &table);
	gp_admin_free_reply(reply);
	return 0;
}

static bool
sees(const Gpupool__AdminSession *session, uint32_t device)
{
	for (size_t i = 0; i < session->n_lines; i++) {
		if (session->lines[i]->device == device)
			return true;
	}
	return false;
}

/* A row for each client of each device; for people all clients of a device in a line. */
static int
get_device_client_list(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column columns[] = { { "DEVICE", "device", CTL_TEXT },
						     { "ID", "id", CTL_NUMBER } };
	bool people = ctl->format == CTL_FORMAT_TABLE;
	const char *pid = count ? words[0] : NULL;
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count > 1)
		return ctl_usage("get_device_client_list [PID]");
	if (ask(ctl, pid, &reply))
		return -1;
	ctl_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t d = 0; d < reply->report->n_devices; d++) {
		char uuid[GP_UUID_TEXT_SIZE];

		gp_admin_uuid(&reply->report->devices[d]->uuid, uuid);
		if (people)
			printf("%s:", uuid);
		for (size_t i = 0; i < reply->report->n_sessions; i++) {
			const Gpupool__AdminSession *s = reply->report->sessions[i];

			if (!is_of(s, pid) || !sees(s, (uint32_t)d))
				continue;
			if (people)
				printf(" %llu", (unsigned long long)s->id);
			ctl_table_text(&table, uuid);
			ctl_table_number(&table, s->id);
		}
		if (people)
			printf("\n");
	}
	if (!people)
		ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static void
add_process(struct ctl_table *table, const Gpupool__AdminReport *report,
	    const Gpupool__AdminSession *s, const Gpupool__AdminLine *line)
{
	char uuid[GP_UUID_TEXT_SIZE];

	gp_admin_uuid(&report->devices[line->device]->uuid, uuid);
	ctl_table_number(table, s->pid);
	ctl_table_number(table, s->id);
	ctl_table_number(table, s->worker);
	ctl_table_text(table, uuid);
	ctl_table_text(table, s->tenant);
	ctl_table_text(table, s->program);
}

static int
ps(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column columns[] = {
		{ "PID", "pid", CTL_NUMBER },           { "ID", "id", CTL_NUMBER },
		{ "SERVER", "server", CTL_NUMBER },     { "DEVICE", "device", CTL_TEXT },
		{ "NAMESPACE", "namespace", CTL_TEXT }, { "COMMAND", "command", CTL_TEXT },
	};
	const char *pid = count == 2 ? words[1] : NULL;
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count != 0 && (count != 2 || strcmp(words[0], "-p") != 0))
		return ctl_usage("ps [-p PID]");
	if (ask(ctl, pid, &reply))
		return -1;
	ctl_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < reply->report->n_sessions; i++) {
		const Gpupool__AdminSession *s = reply->report->sessions[i];

		for (size_t d = 0; is_of(s, pid) && d < s->n_lines; d++)
			add_process(&table, reply->report, s, s->lines[d]);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
device_query(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column columns[] = {
		{ "Ordinal", "ordinal", CTL_NUMBER },
		{ "UUID", "uuid", CTL_TEXT },
		{ "Name", "name", CTL_TEXT },
	};
	bool csv = count && strcmp(words[count - 1], "--csv") == 0;
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (count - csv > 1)
		return ctl_usage("device_query [PID] [--csv]");
	if (ask(ctl, count > csv ? words[0] : NULL, &reply))
		return -1;
	ctl_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t d = 0; d < reply->report->n_devices; d++) {
		char uuid[GP_UUID_TEXT_SIZE];

		gp_admin_uuid(&reply->report->devices[d]->uuid, uuid);
		ctl_table_number(&table, reply->report->devices[d]->ordinal);
		ctl_table_text(&table, uuid);
		ctl_table_text(&table, reply->report->devices[d]->name);
	}
	ctl_table_print(&table, csv ? CTL_FORMAT_CSV : (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
terminate_client(const struct ctl *ctl, int count, char **words)
{
	static const struct ctl_column column = { "RESULT", "result", CTL_NUMBER };
	Gpupool__AdminReply *reply;
	uint64_t session;
	bool found = false;

	if (count != 2)
		return ctl_usage("terminate_client PID ID");
	if (!ctl_parse_session(words[1], &session) || ask(ctl, words[0], &reply))
		return -1;
	for (size_t i = 0; i < reply->report->n_sessions; i++)
		found = found || (reply->report->sessions[i]->id == session &&
				  is_of(reply->report->sessions[i], words[0]));
	gp_admin_free_reply(reply);
	if (!found)
		return ctl_fail("server %s has no client %s, see get_client_list", words[0],
				words[1]);
	if (ctl_terminate(ctl, session))
		return -1;
	answer(ctl, &column, 0, "0");
	return 0;
}

/* Defaults. */

static int
send_defaults(const struct ctl *ctl, Gpupool__AdminDefaults *defaults,
	      Gpupool__AdminReply **reply_p)
{
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_DEFAULTS;
	request.defaults = defaults;
	if (ctl_ask(ctl, &request, CTL_PATIENCE_MS, reply_p))
		return -1;
	if ((*reply_p)->defaults)
		return 0;
	gp_admin_free_reply(*reply_p);
	return ctl_fail("the daemon answers without its defaults");
}

/* Commands of one server name it first.  There is one set of defaults: MPS's default servers-to-be
 * and the server that is there are the same here. */
static int
skip_server(const struct ctl *ctl, int *count, char ***words)
{
	Gpupool__AdminReply *reply;

	if (*count == 0)
		return ctl_fail("which server? see get_server_list");
	if (ask(ctl, (*words)[0], &reply))
		return -1;
	gp_admin_free_reply(reply);
	(*count)--;
	(*words)++;
	return 0;
}

static int
get_default_percentage(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	static const struct ctl_column column = { "PERCENT", "percent", CTL_PERCENT };
	Gpupool__AdminReply *reply;
	char text[CTL_VALUE_MAX];
	uint32_t share;

	if (count)
		return ctl_usage("get_default_active_thread_percentage");
	if (send_defaults(ctl, &defaults, &reply))
		return -1;
	share = reply->defaults->thread_share;
	(void)snprintf(text, sizeof(text), "%u.%02u", share / 100, share % 100);
	if (share % 10 == 0)
		text[strlen(text) - 1] = 0;
	answer(ctl, &column, share, text);
	gp_admin_free_reply(reply);
	return 0;
}

static int
set_default_percentage(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	Gpupool__AdminReply *reply;

	if (count != 1)
		return ctl_usage("set_default_active_thread_percentage PERCENT");
	if (!ctl_parse_percent(words[0], &defaults.thread_share))
		return ctl_fail("%s: that is no percentage above 0 and up to 100", words[0]);
	if (send_defaults(ctl, &defaults, &reply))
		return -1;
	gp_admin_free_reply(reply);
	return get_default_percentage(ctl, 0, NULL);
}

static int
get_percentage(const struct ctl *ctl, int count, char **words)
{
	return skip_server(ctl, &count, &words) ? -1 : get_default_percentage(ctl, count, words);
}

static int
set_percentage(const struct ctl *ctl, int count, char **words)
{
	return skip_server(ctl, &count, &words) ? -1 : set_default_percentage(ctl, count, words);
}

/* By ordinal or UUID, or by the UUID's beginning, as CUDA_VISIBLE_DEVICES takes it. */
static int
find_device(const struct ctl *ctl, const char *name, uint32_t *device_p, uint64_t *memory_p)
{
	Gpupool__AdminReply *reply;
	uint64_t number = UINT64_MAX;
	bool found = false;

	if (ask(ctl, NULL, &reply))
		return -1;
	(void)ctl_parse_number(name, 0, UINT32_MAX, &number);
	for (size_t d = 0; !found && d < reply->report->n_devices; d++) {
		char uuid[GP_UUID_TEXT_SIZE];

		gp_admin_uuid(&reply->report->devices[d]->uuid, uuid);
		found = number == d || (strncasecmp(name, "GPU-", 4) == 0 && strlen(name) > 4 &&
					strncasecmp(name, uuid, strlen(name)) == 0);
		*device_p = (uint32_t)d;
		*memory_p = reply->report->devices[d]->memory_total;
	}
	gp_admin_free_reply(reply);
	return found ? 0 : ctl_fail("there is no device %s, see device_query", name);
}

static int
get_default_memory(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	static const struct ctl_column column = { "MEMORY", "memory_bytes", CTL_BYTES };
	Gpupool__AdminReply *reply;
	char text[CTL_VALUE_MAX];
	uint64_t limit;
	uint32_t device;

	if (count != 1)
		return ctl_usage("get_default_device_pinned_mem_limit DEVICE");
	if (find_device(ctl, words[0], &device, &limit) || send_defaults(ctl, &defaults, &reply))
		return -1;
	if (device < reply->defaults->n_memory && reply->defaults->memory[device]->bytes < limit)
		limit = reply->defaults->memory[device]->bytes;
	gp_admin_free_reply(reply);
	(void)snprintf(text, sizeof(text), "%llu%c",
		       (unsigned long long)(limit / (limit % GIB ? MIB : GIB)),
		       limit % GIB ? 'M' : 'G');
	answer(ctl, &column, limit, text);
	return 0;
}

static int
set_default_memory(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	Gpupool__AdminDefaultMemory memory = GPUPOOL__ADMIN_DEFAULT_MEMORY__INIT, *list = &memory;
	Gpupool__AdminReply *reply;
	uint64_t all;

	if (count != 2)
		return ctl_usage("set_default_device_pinned_mem_limit DEVICE BYTES[M|G]");
	if (!ctl_parse_bytes(words[1], &memory.bytes) || memory.bytes == 0)
		return ctl_fail("%s: that is no size of memory above 0, as 512M and 1G are",
				words[1]);
	if (find_device(ctl, words[0], &memory.device, &all))
		return -1;
	defaults.memory = &list;
	defaults.n_memory = 1;
	if (send_defaults(ctl, &defaults, &reply))
		return -1;
	gp_admin_free_reply(reply);
	return 0;
}

static int
get_memory(const struct ctl *ctl, int count, char **words)
{
	return skip_server(ctl, &count, &words) ? -1 : get_default_memory(ctl, count, words);
}

static int
set_memory(const struct ctl *ctl, int count, char **words)
{
	return skip_server(ctl, &count, &words) ? -1 : set_default_memory(ctl, count, words);
}

static int
get_default_priority(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	static const struct ctl_column column = { "PRIORITY", "priority", CTL_NUMBER };
	Gpupool__AdminReply *reply;
	char text[CTL_VALUE_MAX];

	if (count)
		return ctl_usage("get_default_client_priority");
	if (send_defaults(ctl, &defaults, &reply))
		return -1;
	(void)snprintf(text, sizeof(text), "%u", reply->defaults->priority);
	answer(ctl, &column, reply->defaults->priority, text);
	gp_admin_free_reply(reply);
	return 0;
}

static int
set_default_priority(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminDefaults defaults = GPUPOOL__ADMIN_DEFAULTS__INIT;
	Gpupool__AdminReply *reply;
	uint64_t priority;

	if (count != 1 || !ctl_parse_number(words[0], 0, 1, &priority))
		return ctl_usage("set_default_client_priority 0 | 1");
	defaults.set_priority = true;
	defaults.priority = (uint32_t)priority;
	if (send_defaults(ctl, &defaults, &reply))
		return -1;
	gp_admin_free_reply(reply);
	return 0;
}

/* Waits for the clients, -t: so many seconds at most; then it is no graceful end. */
static int
quit(const struct ctl *ctl, int count, char **words)
{
	int64_t patience_ms = CTL_FOREVER;
	uint64_t seconds;
	int graceful;

	if (count != 0 && (count != 2 || strcmp(words[0], "-t") != 0 ||
			   !ctl_parse_number(words[1], 0, 1000000, &seconds)))
		return ctl_usage("quit [-t SECONDS]");
	if (count)
		patience_ms = (int64_t)seconds * 1000;
	if (ctl_start_drain(ctl, false, false, CTL_PATIENCE_MS))
		return -1;
	graceful = ctl_start_drain(ctl, false, true, patience_ms);
	return ctl_shut_down(ctl) ? -1 : graceful;
}

ctl_command *
ctl_mps_find(const char *word)
{
	static const struct {
		const char *word;
		ctl_command *command;
	} words[] = {
		{ "device_query", device_query },
		{ "get_active_thread_percentage", get_percentage },
		{ "get_client_list", get_client_list },
		{ "get_default_active_thread_percentage", get_default_percentage },
		{ "get_default_client_priority", get_default_priority },
		{ "get_default_device_pinned_mem_limit", get_default_memory },
		{ "get_device_client_list", get_device_client_list },
		{ "get_device_pinned_mem_limit", get_memory },
		{ "get_server_list", get_server_list },
		{ "get_server_status", get_server_status },
		{ "ps", ps },
		{ "quit", quit },
		{ "set_active_thread_percentage", set_percentage },
		{ "set_default_active_thread_percentage", set_default_percentage },
		{ "set_default_client_priority", set_default_priority },
		{ "set_default_device_pinned_mem_limit", set_default_memory },
		{ "set_device_pinned_mem_limit", set_memory },
		{ "shutdown_server", shutdown_server },
		{ "start_server", start_server },
		{ "terminate_client", terminate_client },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i].word) == 0)
			return words[i].command;
	}
	return NULL;
}
