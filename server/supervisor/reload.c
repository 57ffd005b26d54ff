/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/reload.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/common/config/options.h"
#include "server/common/config/reload_report.h"
#include "server/supervisor/admin/manage.h"
#include "server/supervisor/auth/tls_files.h"
#include "server/supervisor/config_report.h"
#include "server/supervisor/notify.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The current certificate may have been loaded from the default path, where it no longer exists. */
static int
check_certificate_exists(const struct gpd_options *options, const struct gp_tls *next, char *error)
{
	struct gp_tls *now = gpd_tls_get();
	bool gone = now && !next && gpd_tls_has_address(options);
	char path[PATH_MAX] = GPD_FILE_CERTIFICATE;

	gp_tls_unref(now);
	if (!gone)
		return 0;
	(void)!gpd_folder_file(GPD_FILE_CERTIFICATE, path, sizeof(path));
	(void)snprintf(error, GPD_RELOAD_REPORT_TEXT_MAX,
		       "%.300s, the certificate, no longer exists", path);
	return GP_E_INVALID;
}

/* Applies to new connections. RDMA addresses keep the setting with which they were opened. */
static void
tls_apply(const struct gpd_options *options, struct gp_tls *tls, struct gpd_reload_report *reloaded)
{
	static bool late;
	struct gp_tls *now = gpd_tls_get();
	char text[GP_URL_TEXT_MAX];

	late = late || (tls && !now);
	gp_tls_unref(now);
	gpd_tls_set(tls);
	for (int i = 0; late && i < options->listen_count; i++) {
		if (strcmp(options->listen[i].scheme, "rdma") != 0)
			continue;
		gp_url_format(&options->listen[i], text, sizeof(text));
		gpd_reload_report_add(reloaded, GPD_LOG_WARNING,
				      "%s stays without TLS until a restart: the daemon started "
				      "without a certificate",
				      text);
	}
}

static void
config_apply(const struct gpd_options *options, struct gpd_manager *manager,
	     struct gpd_config *config, struct gp_tls *tls, struct gpd_reload_report *reloaded)
	GP_LOCKED(manager->source.lock)
{
	if (config->file) {
		gpd_admission_reload(manager->admission, config, reloaded);
		gpd_info("%s is active%s", config->file, tls ? ", and the certificate" : "");
		gpd_config_report_reload(manager->admission, reloaded);
	} else {
		gpd_config_free(config);
		gpd_info("the certificate is active; no configuration file");
	}
	tls_apply(options, tls, reloaded);
	gpd_manager_reload(manager, options, reloaded);
}

/* Loads the files that take effect together or not at all. */
static int
files_read(const struct gpd_options *options, const struct gpd_config *now,
	   struct gpd_config **config_p, struct gp_tls **tls_p, char *error)
{
	const char *path = gpd_options_config(options);
	int r;

	if (!path && now->file) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "%.300s, the configuration, no longer exists", now->file);
		return GP_E_INVALID;
	}
	r = gpd_config_load(path, config_p, error, GPD_CONFIG_ERROR_MAX);
	if (r)
		return r;
	r = gpd_tls_read(options, *config_p, tls_p, error, GPD_CONFIG_ERROR_MAX);
	if (r == 0)
		r = check_certificate_exists(options, *tls_p, error);
	if (r == 0 && !path && !*tls_p) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "no configuration file: %.300s%suse --config", options->usual_config,
			       options->usual_config[0] ? " does not exist; " : "");
		r = GP_E_INVALID;
	}
	if (r) {
		gp_tls_unref(*tls_p);
		gpd_config_free(*config_p);
	}
	return r;
}

/* Excluded from the analysis of locks: it is called through a callback of the manager with an
 * untyped argument. */
GP_LOCK_UNCHECKED void
gpd_reload(const struct gpd_options *options, struct gpd_manager *manager,
	   struct gpd_reload_report *reloaded)
{
	struct gpd_admission *admission = manager->admission;
	struct gpd_config *config;
	struct gp_tls *tls = NULL;

	*reloaded = (struct gpd_reload_report){ .error = "" };
	gpd_notify_reloading();
	if (files_read(options, admission->quota->tenants.config, &config, &tls, reloaded->error)) {
		gpd_error("reload failed, nothing changed: %s", reloaded->error);
	} else {
		config_apply(options, manager, config, tls, reloaded);
		/* After the authorities of client certificates have been set. */
		gpd_authentication_reload_crl(&admission->authentication,
					      admission->quota->tenants.config, gp_now_ms(),
					      reloaded);
	}
	gpd_reload_report_merge(reloaded);
	gpd_notify("READY=1");
}
