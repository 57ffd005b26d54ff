/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/doctor.h"

#include "ctl/command.h"
#include "ctl/value.h"
#include "server/common/base/privilege.h"

#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* No pool is older than this program, so an earlier date means a wrong clock: 2024-01-01. */
#define EARLIEST_S 1704067200

static void
finding_add(struct ctl_doctor *doctor, const char *kind, const char *format, va_list args)
{
	char text[2 * CTL_PATH_MAX];

	(void)vsnprintf(text, sizeof(text), format, args);
	if (doctor->format == CTL_FORMAT_TABLE) {
		printf("%-8s %s\n", kind, text);
		return;
	}
	ctl_table_text(&doctor->findings, kind);
	ctl_table_text(&doctor->findings, text);
}

static void
print_summary(const struct ctl_doctor *doctor)
{
	if (doctor->format == CTL_FORMAT_TABLE)
		printf("%d problem%s, %d note%s\n", doctor->problems,
		       doctor->problems == 1 ? "" : "s", doctor->notes,
		       doctor->notes == 1 ? "" : "s");
	else
		ctl_table_print(&doctor->findings, doctor->format, stdout);
}

void
ctl_problem(struct ctl_doctor *doctor, const char *format, ...)
{
	va_list args;

	doctor->problems++;
	va_start(args, format);
	finding_add(doctor, "problem", format, args);
	va_end(args);
}

void
ctl_note(struct ctl_doctor *doctor, const char *format, ...)
{
	va_list args;

	doctor->notes++;
	va_start(args, format);
	finding_add(doctor, "note", format, args);
	va_end(args);
}

void
ctl_ok(struct ctl_doctor *doctor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	finding_add(doctor, "ok", format, args);
	va_end(args);
}

static void
check_clock(struct ctl_doctor *doctor)
{
	time_t now = time(NULL);
	char text[CTL_VALUE_MAX];

	(void)ctl_format_utc(now, "%Y-%m-%d %H:%M UTC", text);
	if (now < EARLIEST_S)
		ctl_problem(doctor, "clock: %s: certificates and tokens depend on it", text);
	else
		ctl_ok(doctor, "clock: %s", text);
}

/* Sets the user that the daemon runs as, or would run as if it were started here. */
static void
daemon_user_find(struct ctl_doctor *doctor, const Gpupool__AdminReport *report)
{
	const struct passwd *user = getpwnam(GPD_PRIVILEGE_USER);
	const char *name = report ? report->user : user && geteuid() == 0 ? user->pw_name : "";

	(void)snprintf(doctor->user, sizeof(doctor->user), "%s", name);
}

int
ctl_doctor(const struct ctl *ctl, int count, char **argv)
{
	const char *folder = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL } };
	static const struct ctl_column columns[] = { { "KIND", "kind", CTL_TEXT },
						     { "FINDING", "finding", CTL_TEXT } };
	struct ctl_doctor doctor = { .format = (enum ctl_format)ctl->format };
	Gpupool__AdminReply *reply = NULL;

	if (ctl_parse_options(options, 1, &count, argv))
		return -1;
	if (count)
		return ctl_usage_error("doctor [--directory DIR]");
	if (ctl_pool_folder(folder, doctor.folder, sizeof(doctor.folder)))
		return -1;
	ctl_table_init(&doctor.findings, columns, COUNT(columns));
	/* If the daemon does not reply, the request has printed the reason. */
	if (ctl_request_report(ctl, 0, &reply))
		reply = NULL;
	daemon_user_find(&doctor, reply ? reply->report : NULL);
	check_clock(&doctor);
	ctl_doctor_files(&doctor);
	if (reply)
		ctl_doctor_daemon(&doctor, reply->report);
	else
		ctl_problem(
			&doctor,
			"daemon: no reply: see systemctl status gpupoold, or use --socket PATH");
	print_summary(&doctor);
	ctl_table_fini(&doctor.findings);
	if (reply)
		gp_admin_free_reply(reply);
	gpd_config_free(doctor.config);
	gpd_tokens_free(&doctor.tokens);
	return doctor.problems ? -1 : 0;
}
