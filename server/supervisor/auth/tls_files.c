/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/tls_files.h"

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

/* Returns the option's path, else the configured one, else the default one if the file exists; or
 * NULL. */
static const char *
file_choose(const char *option, const char *configured, const char *name, char usual[PATH_MAX])
{
	const char *path = gpd_folder_select_path(option, configured, name, usual, PATH_MAX);

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

/* Paths of the daemon's credentials, with buffers for the default ones. */
struct tls_paths {
	struct gp_tls_files files;
	char certificate[PATH_MAX], key[PATH_MAX], authority[PATH_MAX];
};

/* Returns false if no file is given and none is needed. */
static bool
files_choose(const struct gpd_options *options, const struct gpd_config *config,
	     struct tls_paths *tls_paths)
{
	bool is_named = options->certificate || options->key || options->client_authority ||
			config->certificate[0] || config->key[0] || config->client_authority[0];

	tls_paths->files = (struct gp_tls_files){
		.certificate = file_choose(options->certificate, config->certificate,
					   GPD_FILE_CERTIFICATE, tls_paths->certificate),
		.key = file_choose(options->key, config->key, GPD_FILE_KEY, tls_paths->key),
		.authority = file_choose(options->client_authority, config->client_authority,
					 GPD_FILE_AUTHORITY, tls_paths->authority),
	};
	return is_named || (tls_paths->files.certificate && gpd_tls_has_address(options));
}

int
gpd_tls_read(const struct gpd_options *options, const struct gpd_config *config,
	     struct gp_tls **tls_p, char *error, size_t error_size)
{
	struct tls_paths tls_paths;

	*tls_p = NULL;
	return files_choose(options, config, &tls_paths)
		       ? gp_tls_create_server(&tls_paths.files, tls_p, error, error_size)
		       : 0;
}

static bool
file_is_readable(const char *name, const char *path, gpd_config_report_func *report, void *arg)
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
	struct tls_paths tls_paths;
	bool own, authority;

	if (!files_choose(options, config, &tls_paths))
		return;
	own = file_is_readable("certificate", tls_paths.files.certificate, report, arg);
	own = file_is_readable("key", tls_paths.files.key, report, arg) && own;
	authority = file_is_readable("authority", tls_paths.files.authority, report, arg);

	const struct gp_tls_files daemon = { .certificate = tls_paths.files.certificate,
					     .key = tls_paths.files.key };
	const struct gp_tls_files clients = { .authority = tls_paths.files.authority };

	/* A certificate without a key or the reverse cannot be loaded: let gp_tls_create_server()
	 * report it. */
	own = own || !daemon.certificate || !daemon.key;
	if (own && gp_tls_create_server(&daemon, &tls, error, sizeof(error)))
		report(arg, error);
	gp_tls_unref(tls);
	tls = NULL;
	if (clients.authority && authority &&
	    gp_tls_create_client(&clients, &tls, error, sizeof(error)))
		report(arg, error);
	gp_tls_unref(tls);
}

static const char *
format_time(int64_t time_s, char text[TIME_MAX])
{
	time_t time = (time_t)time_s;
	struct tm when;

	text[0] = 0;
	if (gmtime_r(&time, &when))
		(void)strftime(text, TIME_MAX, "%Y-%m-%d %H:%M UTC", &when);
	return text;
}

bool
gpd_tls_get_warning(const struct gp_tls *tls, char text[GPD_TLS_WARNING_MAX])
{
	int64_t now = (int64_t)time(NULL), until = gp_tls_get_not_after(tls),
		from = gp_tls_get_not_before(tls);
	char date[TIME_MAX], here[TIME_MAX];

	text[0] = 0;
	if (until <= now)
		(void)snprintf(text, GPD_TLS_WARNING_MAX,
			       "the daemon's certificate has expired (%s; here it is %s): clients "
			       "refuse it; gpupoolctl cert init HOST... --force creates a new one",
			       format_time(until, date), format_time(now, here));
	else if (from > now)
		(void)snprintf(text, GPD_TLS_WARNING_MAX,
			       "the daemon's certificate is not valid yet (from %s; here it is "
			       "%s): clients refuse it; check the clocks",
			       format_time(from, date), format_time(now, here));
	else if (until - now < GPD_TLS_SOON_S)
		(void)snprintf(text, GPD_TLS_WARNING_MAX,
			       "the daemon's certificate expires on %s, in %d days; gpupoolctl "
			       "cert init HOST... --force creates a new one",
			       format_time(until, date), (int)((until - now) / 86400));
	return text[0];
}

/* An invalid date does not stop the daemon from using the certificate: its own clock may be
 * wrong. */
static void
check_dates(const struct gp_tls *tls)
{
	char text[GPD_TLS_WARNING_MAX];

	if (gpd_tls_get_warning(tls, text))
		gpd_warning("%s", text);
}

void
gpd_tls_check(void)
{
	struct gp_tls *tls = gpd_tls_get();

	if (tls)
		check_dates(tls);
	gp_tls_unref(tls);
}

void
gpd_tls_set(struct gp_tls *tls)
{
	struct gp_tls *old;

	if (tls)
		check_dates(tls);
	pthread_mutex_lock(&lock);
	old = current;
	current = tls;
	pthread_mutex_unlock(&lock);
	gp_tls_unref(old);
}

struct gp_tls *
gpd_tls_get(void)
{
	struct gp_tls *tls;

	pthread_mutex_lock(&lock);
	tls = current ? gp_tls_ref(current) : NULL;
	pthread_mutex_unlock(&lock);
	return tls;
}
