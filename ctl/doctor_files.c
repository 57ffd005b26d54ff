/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/certificate.h"
#include "ctl/doctor.h"
#include "ctl/revocation.h"
#include "ctl/value.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/privilege.h"
#include "server/common/config/config_lint.h"
#include "server/common/config/token_file.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400
#define CERTIFICATE_SOON_S ((int64_t)30 * DAY_S)
#define TOKEN_SOON_S ((int64_t)7 * DAY_S)
#define GROUPS_MAX 256

/* File permissions. */

static bool
has_group(const struct passwd *user, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	int count = GROUPS_MAX;

	if (getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0)
		return false;
	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* For a file or a folder; want: R_OK or X_OK. */
static bool
user_may_access(const char *name, const struct stat *status, int want)
{
	const struct passwd *user = getpwnam(name);

	if (!user || user->pw_uid == 0)
		return true;
	if (user->pw_uid == status->st_uid)
		return status->st_mode & (mode_t)(want << 6);
	if (has_group(user, status->st_gid))
		return status->st_mode & (mode_t)(want << 3);
	return status->st_mode & (mode_t)want;
}

/* Returns whether the file exists; reports problems with its mode. */
static bool
check_file(struct ctl_doctor *doctor, const char *name, bool secret, char path[CTL_PATH_MAX])
{
	struct stat status;

	if (ctl_pool_file(doctor->folder, name, path, CTL_PATH_MAX) || stat(path, &status))
		return false;
	if (status.st_mode & S_IWOTH)
		ctl_problem(doctor, "%s: writable by all users: chmod o-w", path);
	if (secret && status.st_mode & S_IROTH)
		ctl_problem(doctor, "%s: readable by all users: chmod o-r", path);
	if (doctor->user[0] && !user_may_access(doctor->user, &status, R_OK) &&
	    strcmp(name, GPD_FILE_AUTHORITY_KEY) != 0)
		ctl_problem(doctor,
			    "%s: the daemon's user, %s, cannot read it: chgrp %s and chmod g+r",
			    path, doctor->user, doctor->user);
	return true;
}

static void
check_folder(struct ctl_doctor *doctor)
{
	const struct group *group = getgrnam(GPD_PRIVILEGE_USER);
	struct stat status;

	if (stat(doctor->folder, &status)) {
		ctl_note(doctor, "folder: %s: %s: created by cert init and token create",
			 doctor->folder, strerror(errno));
		return;
	}
	if (status.st_mode & S_IWOTH)
		ctl_problem(doctor, "folder: %s: writable by all users: chmod o-w", doctor->folder);
	else if (doctor->user[0] && !user_may_access(doctor->user, &status, X_OK))
		ctl_problem(
			doctor,
			"folder: %s not accessible to the daemon's user, %s: chgrp %s, chmod 2750",
			doctor->folder, doctor->user, doctor->user);
	else if (group && status.st_uid == 0 && strcmp(doctor->user, GPD_PRIVILEGE_USER) == 0 &&
		 !(status.st_mode & S_ISGID))
		ctl_note(doctor,
			 "folder: %s does not give its files the group %s, so the daemon cannot "
			 "read files that root creates there: chmod g+s",
			 doctor->folder, group->gr_name);
	else
		ctl_ok(doctor, "folder: %s", doctor->folder);
}

/* The configuration and the tokens. */

static void
report_problem(void *arg, const char *text)
{
	ctl_problem(arg, "%s", text);
}

static void
report_note(void *arg, const char *text)
{
	ctl_note(arg, "%s", text);
}

static void
check_config(struct ctl_doctor *doctor)
{
	char path[CTL_PATH_MAX], error[GPD_CONFIG_ERROR_MAX];

	if (!check_file(doctor, GPD_FILE_CONFIG, false, path)) {
		ctl_note(doctor, "configuration: %s/%s does not exist: no quotas", doctor->folder,
			 GPD_FILE_CONFIG);
		return;
	}
	if (gpd_config_load(path, &doctor->config, error, sizeof(error))) {
		doctor->config = NULL;
		ctl_problem(doctor, "configuration: %s", error);
		return;
	}
	ctl_ok(doctor, "configuration: %s: %d tenant%s", path, doctor->config->tenant_count,
	       doctor->config->tenant_count == 1 ? "" : "s");
	gpd_lint_config(&(struct gpd_lint){
		.config = doctor->config, .report = report_note, .arg = doctor });
}

static void
tokens_check_expiry(struct ctl_doctor *doctor)
{
	int64_t now = (int64_t)time(NULL);

	for (size_t i = 0; i < doctor->tokens.count; i++) {
		const struct gpd_token *token = &doctor->tokens.list[i];
		int64_t left = token->expires_s - now;

		if (gpd_token_is_valid(token, now) && left < TOKEN_SOON_S)
			ctl_note(doctor, "token %s of tenant %s expires in %d hours", token->id,
				 token->tenant, (int)(left / 3600));
	}
}

static void
check_tokens(struct ctl_doctor *doctor)
{
	char path[CTL_PATH_MAX], error[GPD_TOKEN_ERROR_MAX];
	int64_t now = (int64_t)time(NULL);
	size_t good = 0;

	if (!check_file(doctor, GPD_FILE_TOKENS, false, path)) {
		ctl_note(doctor, "tokens: %s/%s does not exist: gpupoolctl token create TENANT",
			 doctor->folder, GPD_FILE_TOKENS);
		return;
	}
	if (gpd_tokens_load(path, &doctor->tokens, error, sizeof(error))) {
		ctl_problem(doctor, "tokens: %s", error);
		doctor->tokens_unknown = true;
		return;
	}
	for (size_t i = 0; i < doctor->tokens.count; i++)
		good += gpd_token_is_valid(&doctor->tokens.list[i], now);
	ctl_ok(doctor, "tokens: %s: %zu valid, %zu revoked or expired", path, good,
	       doctor->tokens.count - good);
	tokens_check_expiry(doctor);
	if (doctor->config)
		gpd_lint_tokens(&(struct gpd_lint){ .config = doctor->config,
						    .report = report_problem,
						    .arg = doctor },
				&doctor->tokens);
}

static bool
has_token(const struct ctl_doctor *doctor, const char *tenant)
{
	for (size_t i = 0; i < doctor->tokens.count; i++)
		if (gpd_token_is_valid(&doctor->tokens.list[i], (int64_t)time(NULL)) &&
		    strcmp(doctor->tokens.list[i].tenant, tenant) == 0)
			return true;
	return false;
}

/* A client may also authenticate by a certificate with the tenant's name. */
static void
check_tenants(struct ctl_doctor *doctor)
{
	if (!doctor->config || doctor->tokens_unknown)
		return;
	for (int i = 1; i < doctor->config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &doctor->config->tenants[i];
		char name[GPD_TENANT_NAME_MAX + 8], path[CTL_PATH_MAX];

		(void)snprintf(name, sizeof(name), "%s.pem", tenant->name);
		if (has_token(doctor, tenant->name) || tenant->certificate_count ||
		    tenant->user_count ||
		    (ctl_pool_file(doctor->folder, name, path, sizeof(path)) == 0 &&
		     access(path, F_OK) == 0))
			continue;
		ctl_note(doctor,
			 "tenant %s has no token, no certificate and no users: gpupoolctl token "
			 "create %s",
			 tenant->name, tenant->name);
	}
}

/* Certificates. */

static void
check_dates(struct ctl_doctor *doctor, const char *path, const char *remedy)
{
	struct ctl_certificate_facts facts;
	int64_t now = (int64_t)time(NULL);
	X509 *certificate;
	char until[CTL_VALUE_MAX];

	if (ctl_certificate_read(path, &certificate)) {
		ctl_problem(doctor, "%s: not a certificate", path);
		return;
	}
	if (ctl_certificate_describe(certificate, &facts) == 0) {
		(void)ctl_format_utc(facts.until_s, "%Y-%m-%d %H:%M UTC", until);
		if (facts.until_s <= now)
			ctl_problem(doctor, "%s: it has expired (%s): %s", path, until, remedy);
		else if (facts.from_s > now)
			ctl_problem(doctor, "%s: it is not valid yet: check the clock", path);
		else if (facts.until_s - now < CERTIFICATE_SOON_S)
			ctl_note(doctor, "%s: it expires on %s: %s", path, until, remedy);
		else
			ctl_ok(doctor, "%s: for %s, until %s", path,
			       facts.hosts[0] ? facts.hosts : facts.name, until);
	}
	X509_free(certificate);
}

static void
check_revocations(struct ctl_doctor *doctor, const char *authority_path)
{
	char path[CTL_PATH_MAX];
	X509 *authority = NULL;
	X509_CRL *list = NULL;
	int64_t left;

	if (!check_file(doctor, GPD_FILE_REVOKED, false, path) ||
	    ctl_certificate_read(authority_path, &authority))
		return;
	if (ctl_crl_read(path, authority, &list) || !list) {
		ctl_problem(
			doctor,
			"%s: not usable, so client certificates are rejected: gpupoolctl cert crl",
			path);
	} else {
		left = ctl_crl_get_next_update(list) - (int64_t)time(NULL);
		if (left <= 0)
			ctl_problem(doctor,
				    "%s: expired, so client certificates are rejected: gpupoolctl "
				    "cert crl",
				    path);
		else if (left < TOKEN_SOON_S)
			ctl_note(doctor, "%s: it expires in %d hours: gpupoolctl cert crl", path,
				 (int)(left / 3600));
		else
			ctl_ok(doctor, "%s", path);
	}
	X509_CRL_free(list);
	X509_free(authority);
}

static void
check_certificates(struct ctl_doctor *doctor)
{
	char path[CTL_PATH_MAX], key[CTL_PATH_MAX];
	bool has_key = check_file(doctor, GPD_FILE_KEY, true, key);

	if (check_file(doctor, GPD_FILE_CERTIFICATE, false, path)) {
		check_dates(doctor, path, "gpupoolctl cert init HOST... --force");
		if (!has_key)
			ctl_problem(doctor, "%s: the certificate's key does not exist", key);
	} else {
		ctl_note(doctor,
			 "certificate: %s does not exist, so tls:// is not available: gpupoolctl "
			 "cert init HOST",
			 path);
	}
	(void)check_file(doctor, GPD_FILE_AUTHORITY_KEY, true, key);
	if (check_file(doctor, GPD_FILE_AUTHORITY, false, path)) {
		check_dates(doctor, path, "the pool needs another authority");
		check_revocations(doctor, path);
	}
}

void
ctl_doctor_files(struct ctl_doctor *doctor)
{
	check_folder(doctor);
	check_config(doctor);
	check_tokens(doctor);
	check_tenants(doctor);
	check_certificates(doctor);
}
