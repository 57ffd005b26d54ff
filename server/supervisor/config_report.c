/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/config_report.h"

#include "protocol/admin_messages.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/privilege.h"
#include "server/common/config/token_file.h"
#include "server/supervisor/admin/admin_socket.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/admission/listen.h"
#include "server/supervisor/auth/tls_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_MS INT64_C(86400000)
/* Tokens that expire within this time are reported, as by gpupoolctl doctor. */
#define TOKEN_SOON_S ((int64_t)7 * 86400)
/* The longest error is that of a driver that cannot be loaded. */
#define ERROR_MAX 1408

/* The daemon. */

static void
warning_log(void *reloaded, const char *text)
{
	gpd_reload_report_add(reloaded, GPD_LOG_WARNING, "%s", text);
}

void
gpd_config_report_reload(const struct gpd_admission *admission, struct gpd_reload_report *reloaded)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	const struct gpd_lint lint = { .config = tenants->config,
				       .report = warning_log,
				       .arg = reloaded };
	struct gpd_lint_device devices[GPD_LEDGER_DEVICES];

	gpd_lint_config(&lint);
	gpd_lint_tokens(&lint, &admission->authentication.store.tokens);
	for (int i = 0; i < tenants->config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &tenants->config->tenants[i];
		const char *key = gpd_tenants_sharing_key(tenants, i);

		if (key && (tenant->isolation == GPD_CONFIG_ISOLATION_TENANT ||
			    tenant->isolation == GPD_CONFIG_ISOLATION_SESSION))
			gpd_info("tenant %s: runs as isolation = shared, because of the key %s",
				 tenant->name, key);
	}
	for (int d = 0; d < tenants->device_count; d++) {
		const struct gpd_tenants_device *device = &tenants->devices[d];
		ProtobufCBinaryData uuid = { sizeof(device->uuid), (uint8_t *)device->uuid };

		gp_admin_format_uuid(&uuid, devices[d].uuid);
		devices[d].memory = device->memory;
		devices[d].multiprocessors = (int)device->multiprocessors;
		devices[d].context = gpd_tenants_get_context_memory(tenants, d);
	}
	gpd_lint_devices(&lint, devices, tenants->device_count);
}

/* Reports all tokens in one line, as there may be one for each of many short jobs. */
static void
tokens_report_expiry(const struct gpd_tokens *tokens)
{
	int64_t now_s = (int64_t)time(NULL);
	const struct gpd_token *next = NULL;
	int count = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];

		if (!gpd_token_is_valid(token, now_s) || token->expires_s - now_s > TOKEN_SOON_S)
			continue;
		count++;
		if (!next || token->expires_s < next->expires_s)
			next = token;
	}
	if (next)
		gpd_warning("%d token%s within 7 days, %s of tenant %s in %d hours: gpupoolctl "
			    "token list",
			    count, count == 1 ? " expires" : "s expire", next->id, next->tenant,
			    (int)((next->expires_s - now_s) / 3600));
}

void
gpd_config_report_start(const struct gpd_admission *admission, const struct gpd_options *options)
{
	const struct gpd_config *config = admission->quota->tenants.config;
	struct gpd_reload_report ignored = { .error = "" };

	if (config->file)
		gpd_info("configuration: %s: %d tenant%s", config->file, config->tenant_count,
			 config->tenant_count == 1 ? "" : "s");
	else if (options->usual_config[0])
		gpd_info("no configuration: no quotas (%s does not exist)", options->usual_config);
	else
		gpd_info("no configuration: no quotas (use --config)");
	gpd_config_report_reload(admission, &ignored);
	tokens_report_expiry(&admission->authentication.store.tokens);
}

void
gpd_config_report_expiry(const struct gpd_admission *admission, int64_t now_ms)
{
	static int64_t next_ms;

	if (now_ms < next_ms)
		return;
	/* At the start these are reported when the files are loaded. */
	if (next_ms) {
		gpd_tls_check();
		gpd_crl_file_check(&admission->authentication.crl_state);
		tokens_report_expiry(&admission->authentication.store.tokens);
	}
	next_ms = now_ms + DAY_MS;
}

/* --check-config. */

struct check {
	const struct gpd_options *options;
	struct gpd_lint lint;
	int errors, warnings;
	bool has_certificate;
};

static void check_report(struct check *check, bool error, const char *format, ...) GP_PRINTF(3, 4);

static void
check_report(struct check *check, bool error, const char *format, ...)
{
	va_list args;

	check->errors += error;
	check->warnings += !error;
	(void)fputs(error ? "gpupoold: " : "gpupoold: warning: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
}

static void
check_error(void *check, const char *text)
{
	check_report(check, true, "%s", text);
}

static void
check_warning(void *check, const char *text)
{
	check_report(check, false, "%s", text);
}

static void
check_tokens(struct check *check)
{
	const char *named = check->lint.config->tokens;
	char buffer[GPD_SHARED_PATH_MAX], error[GPD_TOKEN_ERROR_MAX];
	const char *path = gpd_folder_select_path(check->options->tokens, named, GPD_FILE_TOKENS,
						  buffer, sizeof(buffer));
	struct gpd_tokens tokens;

	if (*named && access(named, F_OK))
		check_report(check, false, "tokens = %s: %s", named, strerror(errno));
	if (path && gpd_tokens_load(path, &tokens, error, sizeof(error))) {
		check_error(check, error);
	} else if (path) {
		gpd_lint_tokens(&check->lint, &tokens);
		gpd_tokens_free(&tokens);
	}
}

/* Checks the certificate as if the daemon had a TLS address: the daemon may run with another
 * command line than this check. */
static void
check_certificate(struct check *check)
{
	const char *const crl = check->lint.config->crl;
	char buffer[GPD_SHARED_PATH_MAX], text[GPD_CONFIG_ERROR_MAX];
	const char *path = gpd_folder_select_path(check->options->crl, crl, GPD_FILE_REVOKED,
						  buffer, sizeof(buffer));
	struct gpd_options with_tls = *check->options;
	struct gpd_crl_file file = { 0 };
	int errors = check->errors;
	struct gp_tls *tls = NULL;

	(void)snprintf(with_tls.listen[0].scheme, sizeof(with_tls.listen[0].scheme), "tls");
	gpd_tls_check_files(check->options, check->lint.config, check_error, check);
	if (errors == check->errors &&
	    gpd_tls_read(&with_tls, check->lint.config, &tls, text, sizeof(text)))
		tls = NULL;
	if (tls && gpd_tls_get_warning(tls, text))
		check_warning(check, text);
	gpd_tls_set(tls);
	check->has_certificate = tls != NULL;
	if (path == crl && access(crl, R_OK)) {
		check_report(check, true, "crl = %s: %s", crl, strerror(errno));
		return;
	}
	/* If the certificate cannot be used, the CRL cannot be checked. */
	if (errors == check->errors && gpd_crl_file_open(&file, path, path && path != buffer))
		check_report(check, tls != NULL, "%s%s", file.file.why,
			     tls ? "" : ": with these options the daemon does not start");
	gpd_crl_file_close(&file);
}

/* Checks addresses and sockets that the daemon opens. Network addresses are opened for a moment. */
static void
check_addresses(struct check *check)
{
	const struct gpd_options *options = check->options;
	const struct gpd_config *config = check->lint.config;
	const char *host = options->has_metrics ? options->metrics_host : config->metrics_host;
	uint16_t port = options->has_metrics ? options->metrics_port : config->metrics_port;
	const char *admin = options->admin_socket ? options->admin_socket : config->admin_socket;
	char error[GP_URL_TEXT_MAX + GPD_CONFIG_ERROR_MAX];

	for (int i = 0; i < options->listen_count; i++) {
		const struct gp_url *url = &options->listen[i];
		bool local = strcmp(url->scheme, "unix") == 0;

		if (local && gpd_admin_check(url->host, error, sizeof(error)))
			check_report(check, true, "cannot listen on unix://%s: %s", url->host,
				     error);
		else if (!local && gpd_listen_check(url, options->insecure, error, sizeof(error)))
			check_error(check, error);
	}
	if (*admin && strcmp(admin, "off") != 0 && gpd_admin_check(admin, error, sizeof(error)))
		check_report(check, true, "no admin socket: %s", error);
	if (*host && gpd_metrics_check(host, port, options->insecure, error, sizeof(error)))
		check_report(check, true, "no metrics: %s", error);
}

/* Returns 0, or the errno that prevents writing or creating the file. */
static int
check_writable(const char *path)
{
	char folder[GPD_CONFIG_PATH_MAX];
	struct stat status;
	char *slash;

	if (stat(path, &status) == 0)
		return S_ISDIR(status.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	if (errno != ENOENT)
		return errno;
	(void)snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	return access(folder, W_OK | X_OK) ? errno : 0;
}

/* Checks the files that the daemon reads again after it has switched to its user. */
static void
check_reload(struct check *check)
{
	const struct gpd_config *config = check->lint.config;
	const struct {
		const char *option, *configured, *name;
	} files[] = { { check->options->tokens, config->tokens, GPD_FILE_TOKENS },
		      { check->options->crl, config->crl, GPD_FILE_REVOKED } };
	char error[GPD_CONFIG_ERROR_MAX], buffer[GPD_SHARED_PATH_MAX];
	struct gp_tls *tls = NULL;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *path = gpd_folder_select_path(files[i].option, files[i].configured,
							  files[i].name, buffer, sizeof(buffer));

		if (path && gpd_privilege_require_readable(path, error, sizeof(error)))
			check_error(check, error);
	}
	if (config->file && access(config->file, R_OK))
		check_report(check, false,
			     "%s: not readable by the daemon's user: changes are not noticed and a "
			     "reload fails",
			     config->file);
	if (check->has_certificate &&
	    gpd_tls_read(check->options, config, &tls, error, sizeof(error)))
		check_report(
			check, false,
			"certificate not readable by the daemon's user, a reload will fail: %s",
			error);
	gp_tls_unref(tls);
}

/* Switches this process to the daemon's user. Creates no file, which would have the wrong owner. */
static void
check_user(struct check *check)
{
	const char *usage = check->lint.config->usage;
	char error[GPD_CONFIG_ERROR_MAX];
	uid_t before = geteuid();
	int r;

	if (gpd_privilege_drop(check->options->user, error, sizeof(error)))
		check_error(check, error);
	if (geteuid() != before)
		check_reload(check);
	r = *usage ? check_writable(usage) : 0;
	if (r)
		check_report(check, true, "usage = %s: %s", usage, strerror(r));
}

static void
check_devices(struct check *check, gpd_lint_list_devices *list_devices)
{
	static const char unchecked[] = "device settings are not checked";
	struct gpd_lint_device devices[GPD_LEDGER_DEVICES];
	char error[ERROR_MAX];
	int count = list_devices(check->options->driver,
				 gpd_options_software(check->options, check->lint.config), devices,
				 error, sizeof(error));

	if (count < 0)
		check_report(check, false, "the daemon does not start on this machine: %s; %s",
			     error, unchecked);
	else if (count == 0)
		check_report(check, false, "cannot open a driver with a device: %s (use --driver)",
			     unchecked);
	gpd_lint_devices(&check->lint, devices, count < 0 ? 0 : count);
	for (int d = 0; d < count; d++) {
		if (gpd_lint_shares(check->lint.config, devices, count, d, error))
			printf("%s\n", error);
	}
}

static int
check_finish(const struct check *check, const char *path)
{
	const char *usual = check->options->usual_config;

	if (check->errors)
		(void)fprintf(stderr,
			      "gpupoold: %s: the daemon does not start with it: %d error%s\n",
			      path ? path : "no configuration", check->errors,
			      check->errors == 1 ? "" : "s");
	else if (!path && *usual)
		printf("no configuration: no quotas (%s does not exist)\n", usual);
	else if (!path)
		printf("no configuration: no quotas (use --config)\n");
	else
		printf("%s: valid: %d tenant%s, %d warning%s\n", path,
		       check->lint.config->tenant_count,
		       check->lint.config->tenant_count == 1 ? "" : "s", check->warnings,
		       check->warnings == 1 ? "" : "s");
	return check->errors ? 1 : 0;
}

int
gpd_config_report_check(const struct gpd_options *options, gpd_lint_list_devices *list_devices)
{
	const char *path = gpd_options_config(options);
	struct check check = { .options = options,
			       .lint = { .report = check_warning, .arg = &check } };
	char error[GPD_CONFIG_ERROR_MAX];
	struct gpd_config *config;
	int status;

	/* Suppress warnings of the daemon's functions: the check reports those that matter
	 * itself. */
	gpd_log_level = GPD_LOG_ERROR;
	if (gpd_config_load_all(path, check_error, &check, &config, error, sizeof(error))) {
		if (!check.errors)
			check_error(&check, error);
		return check_finish(&check, path);
	}
	check.lint.config = config;
	gpd_lint_config(&check.lint);
	check_certificate(&check);
	check_tokens(&check);
	check_addresses(&check);
	check_user(&check);
	check_devices(&check, list_devices);
	status = check_finish(&check, path);
	gpd_tls_set(NULL);
	gpd_config_free(config);
	return status;
}
