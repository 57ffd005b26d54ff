/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/usage.h"

#include "base/clock.h"
#include "protocol/printable.h"
#include "server/common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* So much is lost at most of a session whose daemon is killed. */
#define RUNNING_MS ((int64_t)300 * 1000)
#define RETRY_MS ((int64_t)10 * 1000)
#define PENDING_MAX ((size_t)4 << 20)
/* All fields of a record are shorter, quotes included. */
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
write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t done = write(fd, text, size);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			text += done;
			size -= (size_t)done;
		}
	}
	return 0;
}

static int
open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, FILE_MODE);

	return fd < 0 ? -errno : fd;
}

/* A file that would become too long makes room for another one: its descriptor, or -errno. */
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
		gpd_info("usage records: %s is full and is %s from now on", path, before);
	return r ? r : open_file(path);
}

/* All of it, or nothing stays of it: 0, or a negative errno. */
static int
append(const char *path, const char *text, size_t size)
{
	int fd = open_with_room(path, size);
	struct stat status;
	int r;

	if (fd < 0)
		return fd;
	r = fstat(fd, &status) ? -errno : 0;
	if (r == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
		r = write_all(fd, header, sizeof(header) - 1);
	if (r == 0)
		r = write_all(fd, text, size);
	if (r && S_ISREG(status.st_mode) && ftruncate(fd, status.st_size))
		gpd_error("usage records: %s: part of a line stays: %m", path);
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
	r = append(usage->path, usage->pending, usage->used);
	if (r && !usage->retry_ms)
		gpd_error("usage records: %s: %s: %llu are kept in memory until it can be written",
			  usage->path, strerror(-r), (unsigned long long)usage->pending_count);
	if (r) {
		usage->retry_ms = now_ms + RETRY_MS;
		return;
	}
	if (usage->retry_ms)
		gpd_info("usage records: %s has those that were kept: %llu", usage->path,
			 (unsigned long long)usage->pending_count);
	usage->retry_ms = 0;
	usage->used = 0;
	usage->pending_count = 0;
}

/* What there is no room for is lost, and that is said. */
static void
keep(struct gpd_usage *usage, const char *record, size_t size)
{
	size_t room = usage->room ? usage->room : RECORD_MAX;
	char *grown = usage->pending;

	while (room < usage->used + size)
		room *= 2;
	if (room > usage->room && room <= PENDING_MAX)
		grown = realloc(usage->pending, room);
	if (room > PENDING_MAX || !grown) {
		if (usage->lost++ == 0)
			gpd_error("usage records: %s: too many are kept: from now on they are lost "
				  "and counted (gpupool_usage_records_lost_total)",
				  usage->path);
		return;
	}
	usage->pending = grown;
	usage->room = room > usage->room ? room : usage->room;
	memcpy(usage->pending + usage->used, record, size);
	usage->used += size;
	usage->pending_count++;
}

/* Records. */

/* Quoted: clients choose some of it. */
static void
put_text(FILE *file, const char *text)
{
	fputs(",\"", file);
	/* A spreadsheet would take it for a formula. */
	if (gp_is_formula(text))
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

/* Counts are of the session, so one of its devices has them. */
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

static const struct gpd_roster_client *
find_client(const struct gpd_usage *usage, const struct gpd_ledger_session *session)
{
	const struct gpd_admission *admission = usage->admission;

	return gpd_roster_client(&admission->roster,
				 gpd_ledger_index(admission->quota->ledger, session),
				 atomic_load(&session->id));
}

/* A record's file, in memory; NULL: it is lost. */
static FILE *
begin_record(struct gpd_usage *usage, char record[RECORD_MAX])
{
	FILE *file = fmemopen(record, RECORD_MAX, "w");

	usage->lost += !file;
	return file;
}

static void
end_record(struct gpd_usage *usage, const char *record, FILE *file)
{
	long size;

	fputc('\n', file);
	size = ftell(file);
	if (fclose(file) == 0 && size > 0 && size < RECORD_MAX)
		keep(usage, record, (size_t)size);
	else
		usage->lost++;
}

static void
record_device(struct gpd_usage *usage, const struct gpd_ledger_session *session,
	      const struct gpd_roster_client *client, const char *event, int device, bool first)
{
	const struct gpd_ledger *ledger = usage->admission->quota->ledger;
	const struct gpd_ledger_line *line = &session->devices[device];
	char record[RECORD_MAX];
	FILE *file = begin_record(usage, record);

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
	end_record(usage, record, file);
}

/* A record without a client, whose session is the number of sessions. */
static void
record_unused(struct gpd_usage *usage, struct gpd_usage_unused *unused)
{
	struct gpd_ledger_counts counts = { 0 };
	char record[RECORD_MAX];
	FILE *file;

	if (!unused->sessions)
		return;
	file = begin_record(usage, record);
	if (file) {
		atomic_store(&counts.refusals, unused->refusals);
		fprintf(file, "%lld,unused,%016llx,%llu", (long long)time(NULL),
			(unsigned long long)usage->admission->quota->ledger->daemon,
			(unsigned long long)unused->sessions);
		put_text(file, unused->tenant);
		fprintf(file, ",%lld,0", (long long)unused->since_s);
		put_seconds(file, 0);
		fprintf(file, ",0");
		put_counts(file, &counts, true);
		fprintf(file, ",\"\",\"\",0,\"\",\"\",\"\"");
		end_record(usage, record, file);
	}
	*unused = (struct gpd_usage_unused){ 0 };
}

static void
record_all_unused(struct gpd_usage *usage)
{
	for (int t = 0; t < GPD_LEDGER_TENANTS; t++)
		record_unused(usage, &usage->unused[t]);
}

static void
record_session(struct gpd_usage *usage, const struct gpd_ledger_session *session,
	       const struct gpd_roster_client *client, const char *event)
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
has_used(const struct gpd_ledger_session *session)
{
	uint64_t sum =
		atomic_load(&session->counts.launches) + atomic_load(&session->counts.copies);

	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		sum += atomic_load(&session->devices[d].memory_peak) +
		       atomic_load(&session->devices[d].gpu_ns);
	return sum != 0;
}

static void
count_unused(struct gpd_usage *usage, const struct gpd_ledger_session *session)
{
	struct gpd_usage_unused *unused = &usage->unused[session->tenant];
	const char *tenant = usage->admission->quota->ledger->tenants[session->tenant].name;

	/* After a reload the line may be another tenant's. */
	if (strcmp(unused->tenant, tenant) != 0)
		record_unused(usage, unused);
	if (!unused->sessions)
		unused->since_s = (int64_t)time(NULL);
	(void)snprintf(unused->tenant, sizeof(unused->tenant), "%s", tenant);
	unused->sessions++;
	unused->refusals += atomic_load(&session->counts.refusals);
}

void
gpd_usage_ended(void *arg, const struct gpd_ledger_session *session)
{
	struct gpd_usage *usage = arg;
	const struct gpd_roster_client *client = find_client(usage, session);

	/* One that was not let in has used nothing. */
	if (!usage->path[0] || client->session != atomic_load(&session->id))
		return;
	if (has_used(session))
		record_session(usage, session, client, "ended");
	else
		count_unused(usage, session);
}

/* Of sessions that go on; at the end of the daemon they have ended. */
static void
record_all(struct gpd_usage *usage, bool ended)
{
	const struct gpd_ledger *ledger = usage->admission->quota->ledger;

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		const struct gpd_roster_client *client = find_client(usage, s);

		if (client->session != atomic_load(&s->id))
			continue;
		if (has_used(s))
			record_session(usage, s, client, ended ? "ended" : "running");
		else if (ended)
			count_unused(usage, s);
	}
	record_all_unused(usage);
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
gpd_usage_use(struct gpd_usage *usage, const char *path, char *error, size_t error_size)
{
	int r;

	if (strcmp(path, usage->path) == 0)
		return 0;
	r = path[0] ? append(path, "", 0) : 0;
	if (r) {
		(void)snprintf(error, error_size, "usage records: %.200s: %s", path, strerror(-r));
		return -1;
	}
	record_all_unused(usage);
	write_pending(usage, gp_now_ms());
	(void)snprintf(usage->path, sizeof(usage->path), "%s", path);
	return 0;
}

void
gpd_usage_keep(struct gpd_usage *usage, const char *path)
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
			gpd_error("usage records: %llu are lost, as the daemon ends",
				  (unsigned long long)usage->pending_count);
	}
	free(usage->pending);
	usage->pending = NULL;
	usage->used = usage->room = 0;
}
