/* SPDX-License-Identifier: Apache-2.0 */
/* usage: summarizes the daemon's usage records by tenants or sessions. */
#include "ctl/command.h"
#include "ctl/pool_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIELDS 22
#define NS UINT64_C(1000000000)

/* Indices of a record's fields. */
enum field {
	TIME,
	EVENT,
	DAEMON,
	SESSION,
	TENANT,
	STARTED,
	GPU,
	GPU_SECONDS,
	MEMORY_PEAK,
	LAUNCHES,
	COPIES,
	COPIED_IN,
	COPIED_OUT,
	REFUSALS,
	WAITED,
	THROTTLED,
	HOST,
	USER,
	PID,
	PROGRAM,
	ADDRESS,
	CREDENTIALS,
};

/* The last record of a session on a device. */
struct record {
	char *line; /* contains the fields' texts */
	char *fields[FIELDS];
};

struct usage {
	struct record *records;
	size_t count, capacity;
	unsigned long bad; /* number of invalid lines */
};

/* Read. */

/* Parses one field in place; *next_p: text after its comma, or NULL. Returns NULL if it is
 * invalid. */
static char *
field_parse(char *text, char **next_p)
{
	char *to = text, *from = text;

	*next_p = NULL;
	if (*text != '"') {
		from += strcspn(text, ",");
		if (*from)
			*next_p = from + 1;
		*from = 0;
		return text;
	}
	for (from++; *from; from++) {
		if (*from == '"' && *++from != '"')
			break;
		*to++ = *from;
	}
	if (*from == ',')
		*next_p = from + 1;
	else if (*from)
		return NULL;
	*to = 0;
	return text;
}

static bool
line_split(char *line, char *fields[FIELDS])
{
	char *next = line;
	size_t count = 0;

	while (next && count < FIELDS) {
		fields[count] = field_parse(next, &next);
		if (!fields[count++])
			return false;
	}
	return count == FIELDS && !next && isdigit((unsigned char)fields[TIME][0]);
}

static bool
record_is_event(const struct record *record, const char *event)
{
	return strcmp(record->fields[EVENT], event) == 0;
}

/* Records of summed sessions: the field SESSION contains their number. */
static bool
record_is_sum(const struct record *record)
{
	return record_is_event(record, "unused") || record_is_event(record, "summed");
}

static bool
record_is_same(const struct record *a, const struct record *b)
{
	return !record_is_sum(a) && !record_is_sum(b) &&
	       strcmp(a->fields[SESSION], b->fields[SESSION]) == 0 &&
	       strcmp(a->fields[GPU], b->fields[GPU]) == 0 &&
	       strcmp(a->fields[DAEMON], b->fields[DAEMON]) == 0;
}

static int
compare_keys(const void *left, const void *right)
{
	const struct record *a = left, *b = right;
	int r = strcmp(a->fields[DAEMON], b->fields[DAEMON]);

	if (r == 0)
		r = (int)(strtoull(a->fields[SESSION], NULL, 10) >
			  strtoull(b->fields[SESSION], NULL, 10)) -
		    (int)(strtoull(a->fields[SESSION], NULL, 10) <
			  strtoull(b->fields[SESSION], NULL, 10));
	if (r == 0)
		r = strcmp(a->fields[GPU], b->fields[GPU]);
	if (r == 0)
		r = (int)record_is_event(a, "ended") - (int)record_is_event(b, "ended");
	if (r == 0)
		r = (int)(strtoull(a->fields[TIME], NULL, 10) >
			  strtoull(b->fields[TIME], NULL, 10)) -
		    (int)(strtoull(a->fields[TIME], NULL, 10) <
			  strtoull(b->fields[TIME], NULL, 10));
	return r;
}

/* Keeps the last record of each session and device. */
static void
records_drop_older(struct usage *usage)
{
	size_t kept = 0;

	if (usage->count)
		qsort(usage->records, usage->count, sizeof(*usage->records), compare_keys);
	for (size_t i = 0; i < usage->count; i++) {
		if (i + 1 < usage->count &&
		    record_is_same(&usage->records[i], &usage->records[i + 1]))
			free(usage->records[i].line);
		else
			usage->records[kept++] = usage->records[i];
	}
	usage->count = kept;
}

static int
records_add(struct usage *usage, const char *text, int64_t since_s)
{
	struct record record = { .line = strdup(text) };

	if (!record.line)
		return ctl_fail("out of memory");
	if (!line_split(record.line, record.fields)) {
		usage->bad += strncmp(text, "time,event,", 11) != 0;
		free(record.line);
		return 0;
	}
	if (strtoll(record.fields[TIME], NULL, 10) < since_s) {
		free(record.line);
		return 0;
	}
	if (usage->count == usage->capacity) {
		size_t capacity = usage->capacity ? 2 * usage->capacity : 256;
		struct record *grown = realloc(usage->records, capacity * sizeof(*grown));

		if (!grown) {
			free(record.line);
			return ctl_fail("out of memory");
		}
		usage->records = grown;
		usage->capacity = capacity;
	}
	usage->records[usage->count++] = record;
	return 0;
}

static int
read_file(const char *path, bool must_exist, int64_t since_s, struct usage *usage)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (!file && errno == ENOENT && !must_exist)
		return 0;
	if (!file)
		return ctl_fail("%s: %s%s", path, strerror(errno),
				errno == EACCES ? ": only root and the daemon's user have access"
						: "");
	while (r == 0 && getline(&line, &size, file) >= 0) {
		line[strcspn(line, "\n")] = 0;
		r = records_add(usage, line, since_s);
	}
	if (ferror(file))
		r = ctl_fail("%s: %s", path, strerror(errno));
	free(line);
	(void)fclose(file);
	if (usage->bad)
		ctl_warn("%s: %lu lines are not usage records", path, usage->bad);
	usage->bad = 0;
	return r;
}

/* Also reads the previous file, to which the daemon renames a full one. */
static int
read_usage(const char *path, bool with_before, int64_t since_s, struct usage *usage)
{
	char before[CTL_PATH_MAX + 2];
	int r = 0;

	(void)snprintf(before, sizeof(before), "%s.1", path);
	if (with_before)
		r = read_file(before, false, since_s, usage);
	if (r == 0)
		r = read_file(path, true, since_s, usage);
	records_drop_older(usage);
	return r;
}

/* Print. */

static uint64_t
field_get_number(const struct record *record, enum field field)
{
	return strtoull(record->fields[field], NULL, 10);
}

/* Parses "12.000000345" into nanoseconds. */
static uint64_t
field_get_ns(const struct record *record, enum field field)
{
	const char *text = record->fields[field], *point = strchr(text, '.');
	uint64_t part = 0;

	for (int i = 1; i <= 9; i++)
		part = part * 10 +
		       (point && strlen(point) > (size_t)i && isdigit((unsigned char)point[i])
				? (uint64_t)(point[i] - '0')
				: 0);
	return strtoull(text, NULL, 10) * NS + part;
}

static void
print_sessions(const struct ctl *ctl, const struct usage *usage)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_NUMBER },
		{ "TENANT", "tenant", CTL_TEXT },
		{ "HOST", "host", CTL_TEXT },
		{ "USER", "user", CTL_TEXT },
		{ "PROGRAM", "program", CTL_TEXT },
		{ "STATE", "state", CTL_TEXT },
		{ "STARTED", "started", CTL_DATE },
		{ "LAST", "time", CTL_DATE },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "GPU TIME", "gpu_seconds", CTL_NS },
		{ "MEMORY", "memory_peak_bytes", CTL_BYTES },
		{ "LAUNCHES", "launches", CTL_NUMBER },
		{ "IN", "copied_in_bytes", CTL_BYTES },
		{ "OUT", "copied_out_bytes", CTL_BYTES },
		{ "DAEMON", "daemon", CTL_TEXT },
	};
	struct ctl_table table;

	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0; i < usage->count; i++) {
		const struct record *r = &usage->records[i];

		if (record_is_sum(r))
			continue;
		ctl_table_number(&table, field_get_number(r, SESSION));
		ctl_table_text(&table, r->fields[TENANT]);
		ctl_table_text(&table, r->fields[HOST]);
		ctl_table_text(&table, r->fields[USER]);
		ctl_table_text(&table, r->fields[PROGRAM]);
		ctl_table_text(&table, r->fields[EVENT]);
		ctl_table_number(&table, field_get_number(r, STARTED));
		ctl_table_number(&table, field_get_number(r, TIME));
		ctl_table_number(&table, field_get_number(r, GPU));
		ctl_table_number(&table, field_get_ns(r, GPU_SECONDS));
		ctl_table_number(&table, field_get_number(r, MEMORY_PEAK));
		ctl_table_number(&table, field_get_number(r, LAUNCHES));
		ctl_table_number(&table, field_get_number(r, COPIED_IN));
		ctl_table_number(&table, field_get_number(r, COPIED_OUT));
		ctl_table_text(&table, r->fields[DAEMON]);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
}

static int
compare_tenants(const void *left, const void *right)
{
	const struct record *a = left, *b = right;
	int r = strcmp(a->fields[TENANT], b->fields[TENANT]);

	return r ? r : compare_keys(left, right);
}

static void
print_tenant(struct ctl_table *table, const struct record *records, size_t count)
{
	uint64_t sessions = 0, gpu_ns = 0, seconds = 0, sums[CREDENTIALS + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct record *r = &records[i];

		if (record_is_sum(r)) {
			sessions += field_get_number(r, SESSION);
			if (record_is_event(r, "summed") && field_get_number(r, SESSION))
				seconds += field_get_number(r, TIME) - field_get_number(r, STARTED);
		} else if (i == 0 || record_is_sum(r - 1) ||
			   strcmp(r->fields[SESSION], r[-1].fields[SESSION]) != 0 ||
			   strcmp(r->fields[DAEMON], r[-1].fields[DAEMON]) != 0) {
			sessions++;
			seconds += field_get_number(r, TIME) - field_get_number(r, STARTED);
		}
		gpu_ns += field_get_ns(r, GPU_SECONDS);
		for (enum field f = LAUNCHES; f <= REFUSALS; f++)
			sums[f] += field_get_number(r, f);
	}
	ctl_table_text(table, records[0].fields[TENANT]);
	ctl_table_number(table, sessions);
	ctl_table_number(table, seconds * NS);
	ctl_table_number(table, gpu_ns);
	ctl_table_number(table, sums[LAUNCHES]);
	ctl_table_number(table, sums[COPIED_IN]);
	ctl_table_number(table, sums[COPIED_OUT]);
	ctl_table_number(table, sums[REFUSALS]);
}

static void
print_tenants(const struct ctl *ctl, struct usage *usage)
{
	static const struct ctl_column columns[] = {
		{ "TENANT", "tenant", CTL_TEXT },
		{ "SESSIONS", "sessions", CTL_NUMBER },
		{ "CONNECTED", "connected_seconds", CTL_NS },
		{ "GPU TIME", "gpu_seconds", CTL_NS },
		{ "LAUNCHES", "launches", CTL_NUMBER },
		{ "IN", "copied_in_bytes", CTL_BYTES },
		{ "OUT", "copied_out_bytes", CTL_BYTES },
		{ "REFUSALS", "refusals", CTL_NUMBER },
	};
	struct ctl_table table;

	if (usage->count)
		qsort(usage->records, usage->count, sizeof(*usage->records), compare_tenants);
	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0, end; i < usage->count; i = end) {
		end = i + 1;
		while (end < usage->count && strcmp(usage->records[end].fields[TENANT],
						    usage->records[i].fields[TENANT]) == 0)
			end++;
		print_tenant(&table, &usage->records[i], end - i);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
}

/* Parses "30d", or a date: "2026-11-01". */
static bool
parse_since(const char *text, int64_t *since_p)
{
	int64_t seconds;
	struct tm day = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%d", &day);

	if (end && !*end) {
		*since_p = (int64_t)mktime(&day);
		return true;
	}
	if (!ctl_parse_duration(text, &seconds))
		return false;
	*since_p = seconds == INT64_MAX ? 0 : (int64_t)time(NULL) - seconds;
	return true;
}

static int
find_file(const struct ctl *ctl, char path[CTL_PATH_MAX])
{
	Gpupool__AdminReply *reply;

	if (ctl_request_report(ctl, 0, &reply))
		return ctl_fail("--file names the usage records, where no daemon can be asked");
	(void)snprintf(path, CTL_PATH_MAX, "%s", reply->report->usage);
	gp_admin_free_reply(reply);
	return path[0] ? 0
		       : ctl_fail("the daemon writes no usage records: set usage = FILE in "
				  "gpupoold.conf");
}

int
ctl_usage_records(const struct ctl *ctl, int count, char **argv)
{
	const char *since = "never", *by = "tenant", *file = NULL;
	const struct ctl_option options[] = {
		{ "--since", NULL, &since, NULL },
		{ "--by", NULL, &by, NULL },
		{ "--file", NULL, &file, NULL },
	};
	struct usage usage = { 0 };
	char path[CTL_PATH_MAX];
	int64_t since_s;
	int r;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count)
		return ctl_usage_error(
			"usage [--since 30d | DATE] [--by tenant | session] [--file FILE]");
	if (!parse_since(since, &since_s))
		return ctl_fail("--since %s: neither a time (30d, 12h) nor a day (2026-11-01)",
				since);
	if (strcmp(by, "tenant") != 0 && strcmp(by, "session") != 0)
		return ctl_fail("--by %s: neither tenant nor session", by);
	if (file ? snprintf(path, sizeof(path), "%s", file) < 0 : find_file(ctl, path))
		return -1;
	r = read_usage(path, !file, since_s, &usage);
	if (r == 0 && strcmp(by, "session") == 0)
		print_sessions(ctl, &usage);
	else if (r == 0)
		print_tenants(ctl, &usage);
	for (size_t i = 0; i < usage.count; i++)
		free(usage.records[i].line);
	free(usage.records);
	return r;
}
