/* SPDX-License-Identifier: Apache-2.0 */
/* The doorkeeper's list of revoked certificates. */
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/supervisor/door/gate.h"
#include "server/supervisor/door/tls_files.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* NULL: this user has no folder for it.  *named_p: it is not just where it usually is. */
static const char *
path_of(const struct gpd_gate *gate, const struct gpd_config *config, char *room, size_t size,
	bool *named_p)
{
	*named_p = gate->crl_option || config->crl[0];
	if (gate->crl_option)
		return gate->crl_option;
	if (config->crl[0])
		return config->crl;
	return gpd_folder_file(GPD_FILE_REVOKED, room, size) == 0 ? room : NULL;
}

static int
open_file(struct gpd_crl_file *file, const char *path, bool named, char *error, size_t error_size)
{
	struct gp_tls *tls = gpd_tls_get();
	int r = gpd_crl_file_open(file, path, named, tls, time(NULL), error, error_size);

	gp_tls_put(tls);
	return r;
}

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
	gpd_info("%s has been read: %zu revoked%s", file->path, gp_crl_count(file->crl), until);
}

int
gpd_gate_open_revoked(struct gpd_gate *gate, const struct gpd_config *config, const char *option,
		      char *error, size_t error_size)
{
	char room[sizeof(gate->revoked.path)];
	const char *path;
	bool named;
	int r;

	gate->crl_option = option;
	gate->unchecked_ms = INT64_MAX;
	path = path_of(gate, config, room, sizeof(room), &named);
	r = open_file(&gate->revoked, path, named, error, error_size);
	if (r == 0)
		tell(&gate->revoked);
	return r;
}

/* What the log has said once, perhaps long ago. */
static void
tell_unusable(const struct gpd_gate *gate, struct gpd_reloaded *reloaded)
{
	static struct gpd_crl_file again;
	char error[GPD_TOKEN_ERROR_MAX];

	if (!gate->revoked.wrong)
		return;
	if (open_file(&again, gate->revoked.path, gate->revoked.needed, error, sizeof(error)))
		gpd_reloaded_note(reloaded, "the list of revoked certificates cannot be used: %s",
				  error);
	else
		gpd_crl_file_close(&again);
}

void
gpd_gate_reload_revoked(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms,
			struct gpd_reloaded *reloaded)
{
	static struct gpd_crl_file other;
	char room[sizeof(gate->revoked.path)], error[GPD_TOKEN_ERROR_MAX];
	bool named;
	const char *path = path_of(gate, config, room, sizeof(room), &named);
	uint64_t generation = gate->revoked.generation;

	if (strcmp(path ? path : "", gate->revoked.path) == 0) {
		gate->revoked.needed |= named;
		gpd_gate_refresh_revoked(gate, now_ms);
		tell_unusable(gate, reloaded);
		return;
	}
	if (open_file(&other, path, named, error, sizeof(error))) {
		gpd_reloaded_failed(reloaded,
				    "the list of revoked certificates stays as it was: %s", error);
		/* Which may not be one of those that are believed now. */
		gpd_gate_refresh_revoked(gate, now_ms);
		return;
	}
	gpd_crl_file_close(&gate->revoked);
	gate->revoked = other;
	gate->revoked.generation = generation + 1;
	gate->unchecked_ms = INT64_MAX;
	tell(&gate->revoked);
}

void
gpd_gate_refresh_revoked(struct gpd_gate *gate, int64_t now_ms)
{
	struct gp_tls *tls = gpd_tls_get();
	char error[GPD_TOKEN_ERROR_MAX];
	bool changed;

	if (gpd_crl_file_refresh(&gate->revoked, tls, time(NULL), &changed, error, sizeof(error))) {
		gpd_error("the list of revoked certificates cannot be used: nobody is let in by a "
			  "certificate, and in %d s the sessions that came by one end: %s",
			  GPD_GATE_GRACE_MS / 1000, error);
		if (gate->unchecked_ms == INT64_MAX)
			gate->unchecked_ms = now_ms;
	} else if (changed) {
		gate->unchecked_ms = INT64_MAX;
		tell(&gate->revoked);
	}
	gp_tls_put(tls);
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
	if (file->wrong)
		*why_p = "the list of revoked certificates cannot be used";
	return file->wrong || verdict == GP_CRL_UNCHECKED ? GPD_CERTIFICATE_UNCHECKED
							  : GPD_CERTIFICATE_GOOD;
}

const char *
gpd_gate_check_revoked(const struct gpd_gate *gate, struct gpd_pass *pass,
		       const struct gp_conn *conn, int64_t now_ms)
{
	const struct gpd_crl_file *file = &gate->revoked;
	const char *why;

	if (!pass->certified)
		return NULL;
	if (file->wrong && pass->by == GPD_AUTH_BY_CERTIFICATE &&
	    now_ms - gate->unchecked_ms >= GPD_GATE_GRACE_MS)
		return "its certificate cannot be checked: the daemon cannot use its list of "
		       "revoked certificates";
	if (file->wrong || pass->crl_generation == file->generation)
		return NULL;
	switch (gpd_gate_certificate(gate, conn, &why)) {
	case GPD_CERTIFICATE_REVOKED:
		return "its certificate has been revoked";
	case GPD_CERTIFICATE_UNCHECKED:
		if (pass->by == GPD_AUTH_BY_CERTIFICATE)
			return "its certificate cannot be checked: the daemon has no list of "
			       "revoked certificates of its authority";
		break;
	case GPD_CERTIFICATE_GOOD:
		break;
	}
	pass->crl_generation = file->generation;
	return NULL;
}
