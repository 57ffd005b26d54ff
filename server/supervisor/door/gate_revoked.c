/* SPDX-License-Identifier: Apache-2.0 */
/* The doorkeeper's list of revoked certificates. */
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/supervisor/door/gate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void
tell(const struct gpd_crl_file *file)
{
	char until[48] = "";
	struct tm when;
	time_t end;

	if (!file->crl)
		return;
	end = (time_t)gp_crl_until(file->crl);
	if (gp_crl_until(file->crl) != INT64_MAX && gmtime_r(&end, &when))
		(void)strftime(until, sizeof(until), ", it holds until %Y-%m-%d %H:%M UTC", &when);
	gpd_info("%s has been read: %zu revoked%s", file->file.path, gp_crl_count(file->crl),
		 until);
	gpd_crl_file_check(file);
}

int
gpd_gate_open_revoked(struct gpd_gate *gate, const struct gpd_config *config, const char *option,
		      char *error, size_t error_size)
{
	char room[GPD_SHARED_PATH_MAX];
	const char *path =
		gpd_folder_choose(option, config->crl, GPD_FILE_REVOKED, room, sizeof(room));
	int r;

	gate->crl_option = option;
	r = gpd_crl_file_open(&gate->revoked, path, path && path != room);
	if (r == 0)
		tell(&gate->revoked);
	(void)snprintf(error, error_size, "%s", gate->revoked.file.why);
	return r;
}

void
gpd_gate_reload_revoked(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms,
			struct gpd_reloaded *reloaded)
{
	static struct gpd_crl_file other;
	char room[GPD_SHARED_PATH_MAX];
	const char *path = gpd_folder_choose(gate->crl_option, config->crl, GPD_FILE_REVOKED, room,
					     sizeof(room));
	bool named = path && path != room;

	if (strcmp(path ? path : "", gate->revoked.file.path) == 0) {
		gate->revoked.needed |= named;
		gpd_gate_refresh_revoked(gate, now_ms);
		if (gate->revoked.file.wrong)
			gpd_reloaded_say(reloaded, GPD_LOG_ERROR,
					 "the list of revoked certificates cannot be used: %s",
					 gate->revoked.file.why);
		return;
	}
	if (gpd_crl_file_open(&other, path, named)) {
		gpd_reloaded_say(reloaded, GPD_LOG_ERROR,
				 "the list of revoked certificates stays as it was: %s",
				 other.file.why);
		gpd_crl_file_close(&other);
		/* Which may not be one of those that are believed now. */
		gpd_gate_refresh_revoked(gate, now_ms);
		return;
	}
	gpd_crl_file_close(&gate->revoked);
	gate->revoked = other;
	tell(&gate->revoked);
}

void
gpd_gate_refresh_revoked(struct gpd_gate *gate, int64_t now_ms)
{
	enum gpd_shared_file_news news = gpd_crl_file_refresh(&gate->revoked, now_ms);

	if (news == GPD_SHARED_FILE_WRONG)
		gpd_error("the list of revoked certificates cannot be used: nobody is let in by a "
			  "certificate, and in %d s the sessions that came by one end: %s",
			  GPD_GATE_GRACE_MS / 1000, gate->revoked.file.why);
	else if (news == GPD_SHARED_FILE_CHANGED)
		tell(&gate->revoked);
}

/* why: of UNCHECKED, for the log. */
enum gpd_certificate_state
gpd_gate_certificate(const struct gpd_gate *gate, const struct gp_conn *conn, const char **why_p)
{
	const struct gpd_crl_file *file = &gate->revoked;
	enum gp_crl_verdict verdict = GP_CRL_GOOD;

	*why_p = "";
	if (!gp_conn_certificate_serial(conn))
		return GPD_CERTIFICATE_GOOD;
	if (file->crl)
		verdict = gp_crl_check(file->crl, conn, why_p);
	/* What it said before it was damaged is true all the same. */
	if (verdict == GP_CRL_REVOKED)
		return GPD_CERTIFICATE_REVOKED;
	if (file->file.wrong)
		*why_p = "the list of revoked certificates cannot be used";
	return file->file.wrong || verdict == GP_CRL_UNCHECKED ? GPD_CERTIFICATE_UNCHECKED
							       : GPD_CERTIFICATE_GOOD;
}

const char *
gpd_gate_check_revoked(const struct gpd_gate *gate, const struct gpd_pass *pass,
		       const struct gp_conn *conn, int64_t now_ms)
{
	const struct gpd_crl_file *file = &gate->revoked;
	enum gpd_certificate_state state;
	const char *why;

	if (!pass->certified)
		return NULL;
	state = gpd_gate_certificate(gate, conn, &why);
	if (state == GPD_CERTIFICATE_REVOKED)
		return "its certificate has been revoked";
	if (state == GPD_CERTIFICATE_GOOD || pass->by != GPD_AUTH_BY_CERTIFICATE)
		return NULL;
	if (!file->file.wrong)
		return "its certificate cannot be checked: the daemon has no list of revoked "
		       "certificates of its authority";
	return now_ms - file->file.wrong_ms < GPD_GATE_GRACE_MS
		       ? NULL
		       : "its certificate cannot be checked: the daemon cannot use its list of "
			 "revoked certificates";
}
