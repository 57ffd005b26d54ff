/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate revocation lists of the supervisor's authentication. */
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/supervisor/auth/authentication.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void
crl_log(const struct gpd_crl_file *file)
{
	char until[48] = "";
	struct tm when;
	time_t end;

	if (!file->crl)
		return;
	end = (time_t)gp_crl_get_next_update(file->crl);
	if (gp_crl_get_next_update(file->crl) != INT64_MAX && gmtime_r(&end, &when))
		(void)strftime(until, sizeof(until), ", expires %Y-%m-%d %H:%M UTC", &when);
	gpd_info("%s has been read: %zu revoked%s", file->file.path, gp_crl_get_count(file->crl),
		 until);
	gpd_crl_file_check(file);
}

int
gpd_authentication_open_crl(struct gpd_authentication *authentication,
			    const struct gpd_config *config, const char *option, char *error,
			    size_t error_size)
{
	char buffer[GPD_SHARED_PATH_MAX];
	const char *path = gpd_folder_select_path(option, config->crl, GPD_FILE_REVOKED, buffer,
						  sizeof(buffer));
	int r;

	authentication->crl_option = option;
	r = gpd_crl_file_open(&authentication->crl_state, path, path && path != buffer);
	if (r == 0)
		crl_log(&authentication->crl_state);
	(void)snprintf(error, error_size, "%s", authentication->crl_state.file.why);
	return r;
}

void
gpd_authentication_reload_crl(struct gpd_authentication *authentication,
			      const struct gpd_config *config, int64_t now_ms,
			      struct gpd_reload_report *reloaded)
{
	static struct gpd_crl_file other;
	char buffer[GPD_SHARED_PATH_MAX];
	const char *path = gpd_folder_select_path(authentication->crl_option, config->crl,
						  GPD_FILE_REVOKED, buffer, sizeof(buffer));
	bool named = path && path != buffer;

	if (strcmp(path ? path : "", authentication->crl_state.file.path) == 0) {
		authentication->crl_state.needed |= named;
		gpd_authentication_refresh_crl(authentication, now_ms);
		if (authentication->crl_state.file.wrong)
			gpd_reload_report_add(reloaded, GPD_LOG_ERROR, "CRL not usable: %s",
					      authentication->crl_state.file.why);
		return;
	}
	if (gpd_crl_file_open(&other, path, named)) {
		gpd_reload_report_add(reloaded, GPD_LOG_ERROR, "CRL unchanged: %s", other.file.why);
		gpd_crl_file_close(&other);
		/* The previous CRL may not be of an authority that is trusted now. */
		gpd_authentication_refresh_crl(authentication, now_ms);
		return;
	}
	gpd_crl_file_close(&authentication->crl_state);
	authentication->crl_state = other;
	crl_log(&authentication->crl_state);
}

void
gpd_authentication_refresh_crl(struct gpd_authentication *authentication, int64_t now_ms)
{
	enum gpd_shared_file_change news = gpd_crl_file_refresh(&authentication->crl_state, now_ms);

	if (news == GPD_SHARED_FILE_INVALID)
		gpd_error("CRL not usable: client certificates are rejected, and sessions "
			  "authenticated by a certificate end in %d s: %s",
			  GPD_AUTHENTICATION_GRACE_MS / 1000, authentication->crl_state.file.why);
	else if (news == GPD_SHARED_FILE_CHANGED)
		crl_log(&authentication->crl_state);
}

enum gpd_certificate_state
gpd_authentication_check_certificate(const struct gpd_authentication *authentication,
				     const struct gp_conn *conn, const char **why_p)
{
	const struct gpd_crl_file *file = &authentication->crl_state;
	enum gp_crl_verdict verdict = GP_CRL_GOOD;

	*why_p = "";
	if (!gp_conn_get_certificate_serial(conn))
		return GPD_CERTIFICATE_GOOD;
	if (file->crl)
		verdict = gp_crl_check(file->crl, conn, why_p);
	/* Entries of the CRL that was read before the file became invalid are still valid. */
	if (verdict == GP_CRL_REVOKED)
		return GPD_CERTIFICATE_REVOKED;
	if (file->file.wrong)
		*why_p = "CRL not usable";
	return file->file.wrong || verdict == GP_CRL_UNCHECKED ? GPD_CERTIFICATE_UNCHECKED
							       : GPD_CERTIFICATE_GOOD;
}

const char *
gpd_authentication_recheck_certificate(const struct gpd_authentication *authentication,
				       const struct gpd_principal *principal,
				       const struct gp_conn *conn, int64_t now_ms)
{
	const struct gpd_crl_file *file = &authentication->crl_state;
	enum gpd_certificate_state state;
	const char *why;

	if (!principal->certified)
		return NULL;
	state = gpd_authentication_check_certificate(authentication, conn, &why);
	if (state == GPD_CERTIFICATE_REVOKED)
		return "its certificate has been revoked";
	if (state == GPD_CERTIFICATE_GOOD || principal->by != GPD_AUTH_BY_CERTIFICATE)
		return NULL;
	if (!file->file.wrong)
		return "its certificate cannot be checked: the daemon has no CRL of its authority";
	return now_ms - file->file.wrong_ms < GPD_AUTHENTICATION_GRACE_MS
		       ? NULL
		       : "its certificate cannot be checked: the daemon's CRL is not usable";
}
