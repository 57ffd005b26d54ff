/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/usage.h"

#include "base/clock.h"
#include "protocol/printable.h"
#include "server/common/base/log.h"
#include "server/common/base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Interval of records of running sessions; usage of at most this time is lost if the daemon is
 * killed. */
#define RUNNING_MS ((int64_t)300 * 1000)
#define RETRY_MS ((int64_t)10 * 1000)
#define PENDING_MAX ((size_t)4 << 20)
/* Larger than all fields of a record together, including quotes. */
#define RECORD_MAX 2048
#define FILE_MODE 0640

#define NS UINT64_C(1000000000)

static const char header[] =
	"time,event,daemon,session,tenant,started,gpu,gpu_seconds,memory_peak_bytes,launches,"
	"copies,"
	"copied_in_bytes,copied_out_bytes,refusals,waited_seconds,throttled_seconds,host,user,pid,"
	"program,address,credentials\n";

void
gpd_usage_init(struct gpd_usage *usage, const struct gpd_admission *admission)
{
	*usage = (struct gpd_usage){ .admission = admission };
}

/* The file. */

static int
open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, FILE_MODE);

	return fd < 0 ? -errno : fd;
}

/* Opens the file, renaming it first if it would become too long. Returns the descriptor or a
 * negative errno. */
static int
open_with_room(const char *path, size_t size)
{
	char before[GPD_CONFIG_PATH_MAX + 2];
	int fd = open_file(path), r = 0;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size == 0 ||
	    status.st_size + (int64_t)size <= GPD_USAGE_FILE_MAX)
		return fd;
	close(fd);
	(void)snprintf(before, sizeof(before), "%s.1", path);
	if (rename(path, before))
		r = -errno;
	else
		gpd_info("usage records: %s is full and was renamed to %s", path, before);
	return r ? r : open_file(path);
}

/* Appends all records, or none: a partial write is undone. Returns 0 or a negative errno. */
static int
records_append(const char *path, const char *text, size_t size)
{
	int fd = open_with_room(path, size);
	struct stat status;
	int r;

	if (fd < 0)
		return fd;
	r = fstat(fd, &status) ? -errno : 0;
	if (r == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
		r = gpd_shared_file_write_all(fd, header, sizeof(header) - 1);
	if (r == 0)
		r = gpd_shared_file_write_all(fd, text, size);
	if (r && S_ISREG(status.st_mode) && ftruncate(fd, status.st_size))
		gpd_error("usage records: %s: incomplete line left: %m", path);
	if (close(fd) && r == 0)
		r = -errno;
	return r;
}

static void
write_pending(struct gpd_usage *usage, int64_t now_ms)
{
	int r;

	if (!usage->used)
		return;
	r = records_append(usage->path, usage->pending, usage->used);
	if (r && !usage->retry_ms)
		gpd_error("usage records: %s: %s: %llu records buffered in memory until the file "
			  "is writable",
			  usage->path, strerror(-r), (unsigned long long)usage->pending_count);
	if (r) {
		usage->retry_ms = now_ms + RETRY_MS;
		return;
	}
	if (usage->retry_ms)
		gpd_info("usage records: %s: writable again: %llu buffered records written",
			 usage->path, (unsigned long long)usage->pending_count);
	usage->retry_ms = 0;
	usage->used = 0;
	usage->pending_count = 0;
}

/* Drops and counts the record if there is no memory for it. */
static void
pending_push(struct gpd_usage *usage, const char *record, size_t size)
{
	size_t capacity = usage->capacity ? usage->capacity : RECORD_MAX;
	char *grown = usage->pending;

	while (capacity < usage->used + size)
		capacity *= 2;
	if (capacity > usage->capacity && capacity <= PENDING_MAX)
		grown = realloc(usage->pending, capacity);
	if (capacity > PENDING_MAX || !grown) {
		if (usage->lost++ == 0)
			gpd_error("usage records: %s: buffer full: further records are lost and "
				  "counted (gpupool_usage_records_lost_total)",
				  usage->path);
		return;
	}
	usage->pending = grown;
	usage->capacity = capacity > usage->capacity ? capacity : usage->capacity;
	memcpy(usage->pending + usage->used, record, size);
	usage->used += size;
	usage->pending_count++;
}

/* Records. */

/* Quoted, as clients choose some of the text. */
static void
put_text(FILE *file, const char *text)
{
	fputs(",\"", file);
	/* Otherwise a spreadsheet would interpret it as a formula. */
	if (gp_printable_is_formula(text))
		fputc('\'', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
	}
	fputc('"', file);
}

static void
put_seconds(FILE *file, uint64_t ns)
{
	fprintf(file, ",%llu.%09llu", (unsigned long long)(ns / NS), (unsigned long long)(ns % NS));
}

/* Counts are per session, so only the record of its first device contains them. */
static void
put_counts(FILE *file, const struct gpd_ledger_counts *counts, bool has_them)
{
	const struct gpd_ledger_counts none = { 0 };
	const struct gpd_ledger_counts *from = has_them ? counts : &none;

	fprintf(file, ",%llu,%llu,%llu,%llu,%llu", (unsigned long long)atomic_load(&from->launches),
		(unsigned long long)atomic_load(&from->copies),
		(unsigned long long)atomic_load(&from->copied_in),
		(unsigned long long)atomic_load(&from->copied_out),
		(unsigned long long)atomic_load(&from->refusals));
	put_seconds(file, atomic_load(&from->waited_ns));
	put_seconds(file, atomic_load(&from->throttled_ns));
}

static const struct gpd_session_owner *
find_session_owner(const struct gpd_usage *usage, const struct gpd_ledger_session *session)
{
	const struct gpd_admission *admission = usage->admission;

	return gpd_session_owner(&admission->session_owners,
				 gpd_ledger_index(admission->quota->ledger, session),
				 atomic_load(&session->id));
}

/* Opens a record in memory. Returns NULL if it is lost. */
static FILE *
record_open(struct gpd_usage *usage, char record[RECORD_MAX])
{
	FILE *file = fmemopen(record, RECORD_MAX, "w");

	usage->lost += !file;
	return file;
}

static void
record_close(struct gpd_usage *usage, const char *record, FILE *file)
{
	long size;

	fputc('\n', file);
	size = ftell(file);
	if (fclose(file) == 0 && size > 0 && size < RECORD_MAX)
		pending_push(usage, record, (size_t)size);
	else
		usage->lost++;
}

static void
record_device(struct gpd_usage *usage, const struct gpd_ledger_session *session,
	      const struct gpd_session_owner *client, const char *event, int device, bool first)
{
	const struct gpd_ledger *ledger = usage->admission->quota->ledger;
	const struct gpd_ledger_line *line = &session->devices[device];
	char record[RECORD_MAX];
	FILE *file = record_open(usage, record);

	if (!file)
		return;
	fprintf(file, "%lld,%s,%016llx,%llu", (long long)time(NULL), event,
		(unsigned long long)ledger->daemon, (unsigned long long)client->session);
	put_text(file, ledger->tenants[session->tenant].name);
	fprintf(file, ",%lld,%d", (long long)client->started_s, device);
	put_seconds(file, atomic_load(&line->gpu_ns));
	fprintf(file, ",%llu", (unsigned long long)atomic_load(&line->memory_peak));
	put_counts(file, &session->counts, first);
	put_text(file, client->host);
	put_text(file, client->user);
	fprintf(file, ",%u", client->pid);
	put_text(file, client->program);
	put_text(file, client->address);
	put_text(file, client->credentials);
	record_close(usage, record, file);
}

/* A record without a client. The field for the session contains the number of sessions, in the
 * first record only; the start of summed sessions is computed as if they had run one after the
 * other. */
static void
record_sum(struct gpd_usage *usage, const struct gpd_usage_sum *sum, const char *event, int device,
	   bool first)
{
	int64_t now = (int64_t)time(NULL);
	char record[RECORD_MAX];
	FILE *file = record_open(usage, record);

	if (!file)
		return;
	fprintf(file, "%lld,%s,%016llx,%llu", (long long)now, event,
		(unsigned long long)usage->admission->quota->ledger->daemon,
		(unsigned long long)(first ? sum->sessions : 0));
	put_text(file, sum->tenant);
	fprintf(file, ",%lld,%d", (long long)(sum->since_s ? sum->since_s : now - sum->seconds),
		device);
	put_seconds(file, sum->gpu_ns[device]);
	fprintf(file, ",%llu", (unsigned long long)sum->memory_peak[device]);
	put_counts(file, &sum->counts, first);
	fprintf(file, ",\"\",\"\",0,\"\",\"\",\"\"");
	record_close(usage, record, file);
}

static void
sums_record(struct gpd_usage *usage, enum gpd_usage_sum_kind kind, int tenant)
{
	struct gpd_usage_sum *sum = &usage->sums[kind][tenant];
	bool first = true;

	for (int d = 0; sum->sessions && d < GPD_LEDGER_DEVICES; d++) {
		if (!(sum->devices >> d & 1))
			continue;
		record_sum(usage, sum, kind == GPD_USAGE_UNUSED ? "unused" : "summed", d, first);
		first = false;
	}
	*sum = (struct gpd_usage_sum){ 0 };
}

static void
sums_record_all(struct gpd_usage *usage)
{
	for (int kind = 0; kind < GPD_USAGE_SUMS; kind++) {
		for (int t = 0; t < GPD_LEDGER_TENANTS; t++)
			sums_record(usage, (enum gpd_usage_sum_kind)kind, t);
	}
}

static void
record_session(struct gpd_usage *usage, const struct gpd_ledger_session *session,
	       const struct gpd_session_owner *client, const char *event)
{
	bool first = true;

	for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
		if (!(client->devices >> d & 1))
			continue;
		record_device(usage, session, client, event, d, first);
		first = false;
	}
}

static bool
session_has_used(const struct gpd_ledger_session *session)
{
	uint64_t sum =
		atomic_load(&session->counts.launches) + atomic_load(&session->counts.copies);

	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		sum += atomic_load(&session->devices[d].memory_peak) +
		       atomic_load(&session->devices[d].gpu_ns);
	return sum != 0;
}

/* clang-format off */
#define ADD(name) gpd_ledger_count(&sum->counts.name, atomic_load(&session->counts.name));
/* clang-format on */

static void
add_usage(struct gpd_usage_sum *sum, const struct gpd_ledger_session *session)
{
	GPD_LEDGER_EACH_COUNT(ADD)
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
		uint64_t peak = atomic_load(&session->devices[d].memory_peak);

		sum->gpu_ns[d] += atomic_load(&session->devices[d].gpu_ns);
		if (sum->memory_peak[d] < peak)
			sum->memory_peak[d] = peak;
	}
}

static int64_t
session_get_seconds(const struct gpd_session_owner *client)
{
	int64_t seconds = (int64_t)time(NULL) - client->started_s;

	return seconds > 0 ? seconds : 0;
}

static void
sums_add(struct gpd_usage *usage, enum gpd_usage_sum_kind kind,
	 const struct gpd_ledger_session *session, const struct gpd_session_owner *client)
{
	struct gpd_usage_sum *sum = &usage->sums[kind][session->tenant];
	const char *tenant = usage->admission->quota->ledger->tenants[session->tenant].name;

	/* After a reload the ledger entry may belong to another tenant. */
	if (strcmp(sum->tenant, tenant) != 0)
		sums_record(usage, kind, (int)session->tenant);
	if (!sum->sessions && kind == GPD_USAGE_UNUSED)
		sum->since_s = (int64_t)time(NULL);
	(void)snprintf(sum->tenant, sizeof(sum->tenant), "%s", tenant);
	sum->sessions++;
	/* Sessions without usage have one record, of device 0. */
	sum->devices |= kind == GPD_USAGE_UNUSED ? 1 : client->devices;
	if (kind == GPD_USAGE_SUMMED)
		sum->seconds += session_get_seconds(client);
	add_usage(sum, session);
}

/* Returns whether the rate limit allows the session's records, and counts them. */
static bool
session_may_record(struct gpd_usage *usage, const struct gpd_ledger_session *session,
		   const struct gpd_session_owner *client)
{
	int64_t *until_ms = &usage->until_ms[session->tenant], now_ms = gp_now_ms();
	int64_t records = __builtin_popcount(client->devices);

	if (session_get_seconds(client) * 1000 >= RUNNING_MS)
		return true;
	if (*until_ms < now_ms)
		*until_ms = now_ms;
	if (*until_ms - now_ms > (GPD_USAGE_RECORDS - records) * GPD_USAGE_RECORD_MS)
		return false;
	*until_ms += records * GPD_USAGE_RECORD_MS;
	return true;
}

void
gpd_usage_ended(void *arg, const struct gpd_ledger_session *session)
{
	struct gpd_usage *usage = arg;
	const struct gpd_session_owner *client = find_session_owner(usage, session);

	/* A session that was never opened has used nothing. */
	if (!usage->path[0] || client->session != atomic_load(&session->id))
		return;
	if (!session_has_used(session))
		sums_add(usage, GPD_USAGE_UNUSED, session, client);
	else if (session_may_record(usage, session, client))
		record_session(usage, session, client, "ended");
	else
		sums_add(usage, GPD_USAGE_SUMMED, session, client);
}

/* Records all running sessions; when the daemon stops, as ended. */
static void
record_all(struct gpd_usage *usage, bool ended)
{
	const struct gpd_ledger *ledger = usage->admission->quota->ledger;

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		const struct gpd_session_owner *client = find_session_owner(usage, s);

		if (client->session != atomic_load(&s->id))
			continue;
		if (session_has_used(s))
			record_session(usage, s, client, ended ? "ended" : "running");
		else if (ended)
			sums_add(usage, GPD_USAGE_UNUSED, s, client);
	}
	sums_record_all(usage);
}

void
gpd_usage_check(struct gpd_usage *usage, int64_t now_ms)
{
	if (!usage->path[0])
		return;
	if (usage->next_ms <= now_ms) {
		if (usage->next_ms)
			record_all(usage, false);
		usage->next_ms = now_ms + RUNNING_MS;
	}
	if (usage->retry_ms <= now_ms)
		write_pending(usage, now_ms);
}

int
gpd_usage_set_path(struct gpd_usage *usage, const char *path, char *error, size_t error_size)
{
	int r;

	if (strcmp(path, usage->path) == 0)
		return 0;
	r = path[0] ? records_append(path, "", 0) : 0;
	if (r) {
		(void)snprintf(error, error_size, "usage records: %.200s: %s", path, strerror(-r));
		return -1;
	}
	sums_record_all(usage);
	write_pending(usage, gp_now_ms());
	(void)snprintf(usage->path, sizeof(usage->path), "%s", path);
	return 0;
}

void
gpd_usage_set_path_deferred(struct gpd_usage *usage, const char *path)
{
	(void)snprintf(usage->path, sizeof(usage->path), "%s", path);
	usage->retry_ms = gp_now_ms() + RETRY_MS;
}

void
gpd_usage_close(struct gpd_usage *usage)
{
	if (usage->path[0]) {
		record_all(usage, true);
		write_pending(usage, gp_now_ms());
		if (usage->used)
			gpd_error("usage records: %llu lost at exit",
				  (unsigned long long)usage->pending_count);
	}
	free(usage->pending);
	usage->pending = NULL;
	usage->used = usage->capacity = 0;
}
