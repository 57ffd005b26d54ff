/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/tls_files.h"

#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
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

/* The files of the daemon's credentials, and room for the paths of the usual ones. */
struct chosen {
	struct gp_tls_files files;
	char certificate[PATH_MAX], key[PATH_MAX], authority[PATH_MAX];
};

/* false: none is named, and none is needed. */
static bool
choose_all(const struct gpd_options *options, const struct gpd_config *config,
	   struct chosen *chosen)
{
	bool given = options->certificate || options->key || options->client_authority ||
		     config->certificate[0] || config->key[0] || config->client_authority[0];

	chosen->files = (struct gp_tls_files){
		.certificate = choose(options->certificate, config->certificate,
				      GPD_FILE_CERTIFICATE, chosen->certificate),
		.key = choose(options->key, config->key, GPD_FILE_KEY, chosen->key),
		.authority = choose(options->client_authority, config->client_authority,
				    GPD_FILE_AUTHORITY, chosen->authority),
	};
	return given || (chosen->files.certificate && gpd_tls_has_address(options));
}

int
gpd_tls_read(const struct gpd_options *options, const struct gpd_config *config,
	     struct gp_tls **tls_p, char *error, size_t error_size)
{
	struct chosen chosen;

	*tls_p = NULL;
	return choose_all(options, config, &chosen)
		       ? gp_tls_server(&chosen.files, tls_p, error, error_size)
		       : 0;
}

static bool
is_there(const char *name, const char *path, gpd_config_report_func *report, void *arg)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (!path || access(path, R_OK) == 0)
		return true;
	(void)snprintf(error, sizeof(error), "%s %s: %s", name, path, strerror(errno));
	report(arg, error);
	return false;
}

void
gpd_tls_check_files(const struct gpd_options *options, const struct gpd_config *config,
		    gpd_config_report_func *report, void *arg)
{
	char error[GPD_CONFIG_ERROR_MAX];
	struct gp_tls *tls = NULL;
	struct chosen chosen;
	bool own, authority;

	if (!choose_all(options, config, &chosen))
		return;
	own = is_there("certificate", chosen.files.certificate, report, arg);
	own = is_there("key", chosen.files.key, report, arg) && own;
	authority = is_there("authority", chosen.files.authority, report, arg);

	const struct gp_tls_files daemon = { .certificate = chosen.files.certificate,
					     .key = chosen.files.key };
	const struct gp_tls_files clients = { .authority = chosen.files.authority };

	/* Of a pair that is not one nothing is read. */
	own = own || !daemon.certificate || !daemon.key;
	if (own && gp_tls_server(&daemon, &tls, error, sizeof(error)))
		report(arg, error);
	gp_tls_put(tls);
	tls = NULL;
	if (clients.authority && authority && gp_tls_client(&clients, &tls, error, sizeof(error)))
		report(arg, error);
	gp_tls_put(tls);
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

bool
gpd_tls_doubt(const struct gp_tls *tls, char text[GPD_TLS_DOUBT_MAX])
{
	int64_t now = (int64_t)time(NULL), until = gp_tls_until(tls), from = gp_tls_from(tls);
	char date[TIME_MAX], here[TIME_MAX];

	text[0] = 0;
	if (until <= now)
		(void)snprintf(text, GPD_TLS_DOUBT_MAX,
			       "the daemon's certificate has expired (%s; here it is %s): clients "
			       "refuse it; gpupoolctl cert init HOST... --force makes another",
			       spell(until, date), spell(now, here));
	else if (from > now)
		(void)snprintf(text, GPD_TLS_DOUBT_MAX,
			       "the daemon's certificate is not valid yet (from %s; here it is "
			       "%s): clients refuse it; check the clocks",
			       spell(from, date), spell(now, here));
	else if (until - now < GPD_TLS_SOON_S)
		(void)snprintf(text, GPD_TLS_DOUBT_MAX,
			       "the daemon's certificate expires on %s, in %d days; gpupoolctl "
			       "cert init HOST... --force makes another",
			       spell(until, date), (int)((until - now) / 86400));
	return text[0];
}

/* The daemon serves with it all the same: its clock, too, may be wrong. */
static void
check_dates(const struct gp_tls *tls)
{
	char text[GPD_TLS_DOUBT_MAX];

	if (gpd_tls_doubt(tls, text))
		gpd_warning("%s", text);
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
