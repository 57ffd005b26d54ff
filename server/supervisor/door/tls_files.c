/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/tls_files.h"

#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIME_MAX 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_tls *current GP_GUARDED_BY(lock);

/* The first that is given, or the usual file if that is there; NULL: there is none. */
static const char *
choose(const char *option, const char *configured, const char *name, char usual[PATH_MAX])
{
	const char *path = gpd_folder_choose(option, configured, name, usual, PATH_MAX);

	return path == usual && access(usual, F_OK) ? NULL : path;
}

bool
gpd_tls_has_address(const struct gpd_options *options)
{
	for (int i = 0; i < options->listen_count; i++) {
		if (strcmp(options->listen[i].scheme, "tls") == 0 ||
		    strcmp(options->listen[i].scheme, "rdma") == 0)
			return true;
	}
	return false;
}

int
gpd_tls_read(const struct gpd_options *options, const struct gpd_config *config,
	     struct gp_tls **tls_p, char *error, size_t error_size)
{
	char certificate[PATH_MAX], key[PATH_MAX], authority[PATH_MAX];
	struct gp_tls_files files = {
		.certificate = choose(options->certificate, config->certificate,
				      GPD_FILE_CERTIFICATE, certificate),
		.key = choose(options->key, config->key, GPD_FILE_KEY, key),
		.authority = choose(options->client_authority, config->client_authority,
				    GPD_FILE_AUTHORITY, authority),
	};
	bool given = options->certificate || options->key || options->client_authority ||
		     config->certificate[0] || config->key[0] || config->client_authority[0];

	*tls_p = NULL;
	if (!given && (!files.certificate || !gpd_tls_has_address(options)))
		return 0;
	return gp_tls_server(&files, tls_p, error, error_size);
}

static const char *
spell(int64_t time_s, char text[TIME_MAX])
{
	time_t time = (time_t)time_s;
	struct tm when;

	text[0] = 0;
	if (gmtime_r(&time, &when))
		(void)strftime(text, TIME_MAX, "%Y-%m-%d %H:%M UTC", &when);
	return text;
}

/* The daemon serves with it all the same: its clock, too, may be wrong. */
static void
check_dates(const struct gp_tls *tls)
{
	int64_t now = (int64_t)time(NULL), until = gp_tls_until(tls), from = gp_tls_from(tls);
	char date[TIME_MAX], here[TIME_MAX];

	if (until <= now)
		gpd_warning("the daemon's certificate has expired (%s; here it is %s): clients "
			    "refuse it; gpupoolctl cert init HOST... --force makes another",
			    spell(until, date), spell(now, here));
	else if (from > now)
		gpd_warning("the daemon's certificate is not valid yet (from %s; here it is %s): "
			    "clients refuse it; check the clocks",
			    spell(from, date), spell(now, here));
	else if (until - now < GPD_TLS_SOON_S)
		gpd_warning("the daemon's certificate expires on %s, in %d days; gpupoolctl cert "
			    "init HOST... --force makes another",
			    spell(until, date), (int)((until - now) / 86400));
}

void
gpd_tls_check(void)
{
	struct gp_tls *tls = gpd_tls_get();

	if (tls)
		check_dates(tls);
	gp_tls_put(tls);
}

void
gpd_tls_use(struct gp_tls *tls)
{
	struct gp_tls *old;

	if (tls)
		check_dates(tls);
	pthread_mutex_lock(&lock);
	old = current;
	current = tls;
	pthread_mutex_unlock(&lock);
	gp_tls_put(old);
}

struct gp_tls *
gpd_tls_get(void)
{
	struct gp_tls *tls;

	pthread_mutex_lock(&lock);
	tls = current ? gp_tls_get(current) : NULL;
	pthread_mutex_unlock(&lock);
	return tls;
}
