/* SPDX-License-Identifier: Apache-2.0 */
/* check: the user's credentials and quotas at a daemon. */
#include "cli/check.h"
#include "client/connect/credentials.h"
#include "client/connect/token.h"
#include "ctl/value.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SKEW_S 5
#define SKEW_MAX_S 60
#define SOON_S (7 * 86400)

void
check_token(const struct gp_url *url)
{
	struct gpc_credentials credentials;
	struct gp_token token;
	struct stat status;
	char error[768];
	bool given;
	const char *path;
	int r;

	if (gpc_credentials_find(url, &credentials, error, sizeof(error))) {
		check_print(CHECK_ERROR, "token", "%s", error);
		return;
	}
	path = credentials.token;
	/* gpc_token_read() prints its own warning if others can read the file; here it is reported
	 * as an error below. */
	r = gpc_token_read(&credentials, &token, &given, error, sizeof(error));
	if (r == 0 && !given)
		check_print(CHECK_OK, "token",
			    "none: daemons of other users or machines require a token or a "
			    "certificate (gpupool login)");
	else if (r)
		check_print(CHECK_ERROR, "token", "%s; \"gpupool login\" stores it again", error);
	else if (stat(path, &status) == 0 && status.st_mode & S_IROTH)
		check_print(CHECK_ERROR, "token", "%s: others can read it; chmod 600 %s", path,
			    path);
	else
		check_print(CHECK_OK, "token", "%s of %s", token.id, path);
	explicit_bzero(&token, sizeof(token));
	gpc_credentials_fini(&credentials);
}

/* Returns a remedy for errors whose text does not contain one. */
static const char *
error_get_remedy(const char *error)
{
	static const struct {
		const char *part, *remedy;
	} remedies[] = {
		{ "unknown token", "it is another pool's, or not on this daemon's list: ask the "
				   "pool's administrator for a token (gpupoolctl token create)" },
		{ "has been revoked", "ask the pool's administrator for another token" },
		{ "token has expired", "ask the pool's administrator for another token" },
		{ "a token is required", "gpupool login POOL < TOKEN_FILE" },
		{ "credentials are required", "gpupool login POOL < TOKEN_FILE" },
		{ "does not belong to a tenant",
		  "the administrator adds its name to certificate = of a tenant" },
		/* Texts of daemons of the last release. */
		{ "token is not known",
		  "it is another pool's, or not on this daemon's list: ask the "
		  "pool's administrator for a token (gpupoolctl token create)" },
		{ "a token is needed", "gpupool login POOL < TOKEN_FILE" },
		{ "credentials are needed", "gpupool login POOL < TOKEN_FILE" },
		{ "names no tenant",
		  "the administrator adds its name to certificate = of a tenant" },
		{ "unexpected Welcome",
		  "the daemon is older than this gpupool and does not support the request" },
	};

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		if (strstr(error, remedies[i].part))
			return remedies[i].remedy;
	}
	return NULL;
}

static void
check_credentials(const Gpupool__Account *account)
{
	char tenant[80], credentials[256], date[CTL_VALUE_MAX], until[48] = "";

	if (account->until_s)
		(void)snprintf(until, sizeof(until), ", until %s",
			       ctl_format_date((uint64_t)account->until_s, date));
	check_print(account->until_s && account->until_s - time(NULL) < SOON_S ? CHECK_NOTE
									       : CHECK_OK,
		    "credentials", "tenant %s, authenticated by %s%s",
		    cli_probe_text(account->tenant, tenant, sizeof(tenant)),
		    cli_probe_text(account->credentials, credentials, sizeof(credentials)), until);
}

static void
check_versions(const Gpupool__Account *account)
{
	char version[80];
	bool same = strcmp(account->server_version, GPUPOOL_VERSION) == 0;

	check_print(same ? CHECK_OK : CHECK_NOTE, "versions",
		    "gpupool %s here, %s there; CUDA %u.%u%s", GPUPOOL_VERSION,
		    cli_probe_text(account->server_version, version, sizeof(version)),
		    account->driver_version / 1000, account->driver_version % 1000 / 10,
		    account->software ? ", on the software device, without a GPU" : "");
}

static void
check_clocks(const Gpupool__Account *account)
{
	int64_t ahead_s = account->now_s - (int64_t)time(NULL);
	int64_t off_s = ahead_s < 0 ? -ahead_s : ahead_s;

	if (off_s <= SKEW_S)
		check_print(CHECK_OK, "clocks", "agree (%lld s apart)", (long long)off_s);
	else
		check_print(off_s > SKEW_MAX_S ? CHECK_ERROR : CHECK_NOTE, "clocks",
			    "the daemon's is %lld s %s; certificates and tokens depend on them: "
			    "set both "
			    "by "
			    "NTP",
			    (long long)off_s, ahead_s > 0 ? "ahead" : "behind");
}

static void
check_quotas(const Gpupool__Account *account)
{
	char name[256], most[CTL_VALUE_MAX], used[CTL_VALUE_MAX], all[CTL_VALUE_MAX];

	for (size_t i = 0; i < account->n_devices; i++) {
		const Gpupool__AccountDevice *device = account->devices[i];
		uint64_t quota = device->quota_memory < device->memory ? device->quota_memory
								       : device->memory;
		uint32_t sm = device->quota_sm ? device->quota_sm : device->multiprocessors;
		bool full = device->quota_used >= quota || device->memory_used >= device->memory;

		check_print(full ? CHECK_NOTE : CHECK_OK, "quota",
			    "GPU %d, %s: %s of your %s are used; %u of %u multiprocessors; all "
			    "sessions "
			    "(%u) have %s%s",
			    device->ordinal, cli_probe_text(device->name, name, sizeof(name)),
			    ctl_format_bytes(device->quota_used, used),
			    ctl_format_bytes(quota, most), sm, device->multiprocessors,
			    device->sessions, ctl_format_bytes(device->memory_used, all),
			    full ? "; the next allocation fails: out of memory" : "");
	}
	if (account->n_devices == 0)
		check_print(CHECK_ERROR, "quota",
			    "the tenant may use no device of this daemon; its "
			    "administrator gives it some (devices = in gpupoold.conf)");
}

static void
check_session_slots(const Gpupool__Account *account)
{
	char full[512], most[48] = "";

	if (account->sessions_max)
		(void)snprintf(most, sizeof(most), " of at most %u", account->sessions_max);
	if (*account->full)
		check_print(CHECK_ERROR, "slots",
			    "%s; \"gpupool run --wait 10m\" waits for a session slot",
			    cli_probe_text(account->full, full, sizeof(full)));
	else
		check_print(CHECK_OK, "slots",
			    "your tenant has %u session%s%s, the daemon %u of %u",
			    account->sessions, account->sessions == 1 ? "" : "s", most,
			    account->sessions_all, account->sessions_all_max);
}

bool
check_account(struct cli_daemon *daemon)
{
	const Gpupool__Account *account;
	const char *remedy;

	if (cli_probe_query(daemon)) {
		remedy = error_get_remedy(daemon->error);
		check_print(CHECK_ERROR, "credentials", "%s%s%s", daemon->error, remedy ? "; " : "",
			    remedy ? remedy : "");
		return false;
	}
	account = daemon->account;
	check_credentials(account);
	check_versions(account);
	check_clocks(account);
	check_quotas(account);
	check_session_slots(account);
	return !*account->full && account->n_devices > 0;
}
