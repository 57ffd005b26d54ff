/* SPDX-License-Identifier: Apache-2.0 */
/* quarantine list, quarantine end. */
#include "ctl/command.h"
#include "ctl/value.h"

#include <string.h>

static int
quarantine_list(const struct ctl *ctl)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_NUMBER },         { "TENANT", "tenant", CTL_TEXT },
		{ "PROGRAM", "program", CTL_TEXT }, { "USER", "user", CTL_TEXT },
		{ "HOST", "host", CTL_TEXT },       { "UNTIL", "until", CTL_DATE },
		{ "REASON", "reason", CTL_TEXT },
	};
	Gpupool__AdminReply *reply;
	struct ctl_table table;

	if (ctl_request_report(ctl, 0, &reply))
		return -1;
	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0; i < reply->report->n_quarantines; i++) {
		const Gpupool__AdminQuarantine *quarantine = reply->report->quarantines[i];

		ctl_table_number(&table, quarantine->id);
		ctl_table_text(&table, quarantine->tenant);
		ctl_table_text(&table, quarantine->program[0] ? quarantine->program : NULL);
		ctl_table_text(&table, quarantine->user[0] ? quarantine->user : NULL);
		ctl_table_text(&table, quarantine->host[0] ? quarantine->host : NULL);
		ctl_table_number(&table, quarantine->until_s);
		ctl_table_text(&table, quarantine->reason);
	}
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gp_admin_free_reply(reply);
	return 0;
}

static int
quarantine_end(const struct ctl *ctl, const char *id)
{
	Gpupool__AdminQuarantineEnd end = GPUPOOL__ADMIN_QUARANTINE_END__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	if (!ctl_parse_number(id, 1, UINT64_MAX - 1, &end.id))
		return ctl_fail(
			"invalid quarantine \"%s\": use an ID of gpupoolctl quarantine list", id);
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_QUARANTINE_END;
	request.quarantine_end = &end;
	return ctl_request_status(ctl, &request, CTL_TIMEOUT_MS);
}

int
ctl_quarantine(const struct ctl *ctl, int count, char **argv)
{
	if (count == 1 && strcmp(argv[0], "list") == 0)
		return quarantine_list(ctl);
	if (count == 2 && strcmp(argv[0], "end") == 0)
		return quarantine_end(ctl, argv[1]);
	return ctl_unknown("quarantine", count, argv, "quarantine list | end ID");
}
