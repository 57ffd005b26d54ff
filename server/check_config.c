/* SPDX-License-Identifier: Apache-2.0 */
#include "server/check_config.h"

#include "base/status.h"
#include "protocol/admin_messages.h"
#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/privilege.h"
#include "server/common/base/shared_file.h"
#include "server/common/config/config_doubt.h"
#include "server/common/config/options.h"
#include "server/common/config/token_file.h"
#include "server/supervisor/admin/admin_socket.h"
#include "server/supervisor/admin/metrics.h"
#include "server/supervisor/admission/listen.h"
#include "server/supervisor/door/crl_file.h"
#include "server/supervisor/door/tls_files.h"
#include "server/worker/device/driver.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A driver that cannot be opened has most to say. */
#define TEXT_MAX 1664

struct check {
	const struct gpd_options *options;
	const struct gpd_config *config;
	int wrong, doubts; /* errors, and warnings */
};

static void
tell(void *arg, const char *text)
{
	int *count = arg;

	(*count)++;
	(void)fprintf(stderr, "gpupoold: warning: %s\n", text);
}

static void
report_error(void *arg, const char *text)
{
	int *count = arg;

	(*count)++;
	(void)fprintf(stderr, "gpupoold: %s\n", text);
}

static void check_format(struct check *check, const char *format, ...) GP_PRINTF(2, 3);
static void doubt_format(struct check *check, const char *format, ...) GP_PRINTF(2, 3);

static void
check_format(struct check *check, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report_error(&check->wrong, text);
}

static void
doubt_format(struct check *check, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell(&check->doubts, text);
}

static void
look_at(int ordinal, struct gpd_config_device_facts *facts)
{
	ProtobufCBinaryData bytes = { 0 };
	char text[GP_UUID_TEXT_SIZE];
	CUdevice device = 0;
	size_t memory = 0;
	CUuuid uuid = { { 0 } };
	int sms = 0;

	(void)gpd_driver.cuDeviceGet(&device, ordinal);
	(void)gpd_driver.cuDeviceTotalMem_v2(&memory, device);
	(void)gpd_driver.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
					      device);
	(void)gpd_driver.cuDeviceGetUuid_v2(&uuid, device);
	bytes.len = sizeof(uuid.bytes);
	bytes.data = (uint8_t *)uuid.bytes;
	gp_admin_uuid(&bytes, text);
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	*facts = (struct gpd_config_device_facts){ .memory = memory,
						   .multiprocessors = (uint32_t)sms };
	(void)snprintf(facts->uuid, sizeof(facts->uuid), "%s", text);
}

static void
check_devices(struct check *check)
{
	static const char unchecked[] = "what the configuration says of devices is not checked";
	const struct gpd_options *options = check->options;
	struct gpd_config_device_facts facts[GPD_LEDGER_DEVICES];
	char error[TEXT_MAX - 256];
	int count = 0;

	/* As the worker does: it is a real driver, even if a client library is found first. */
	(void)unsetenv("REMOTE_GPU");
	if (gpd_driver_open(options->driver, gpd_options_software(options, check->config), error,
			    sizeof(error))) {
		doubt_format(check, "on this machine the daemon does not start: %s; %s", error,
			     unchecked);
		return;
	}
	if (gpd_driver.cuInit(0) != CUDA_SUCCESS ||
	    gpd_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
		doubt_format(check,
			     "no driver with a device can be opened here: %s (--driver names one)",
			     unchecked);
		return;
	}
	if (count > GPD_LEDGER_DEVICES)
		count = GPD_LEDGER_DEVICES;
	for (int i = 0; i < count; i++)
		look_at(i, &facts[i]);
	gpd_config_doubt_devices(check->config, facts, count, tell, &check->doubts);
}

static void
check_tokens(struct check *check)
{
	const struct gpd_config *config = check->config;
	char room[GPD_SHARED_PATH_MAX], error[GPD_TOKEN_ERROR_MAX];
	const char *path = gpd_folder_choose(check->options->tokens, config->tokens,
					     GPD_FILE_TOKENS, room, sizeof(room));
	struct gpd_tokens tokens;

	if (*config->tokens && access(config->tokens, F_OK))
		doubt_format(check, "tokens = %s: %s", config->tokens, strerror(errno));
	if (!path)
		return;
	if (gpd_tokens_load(path, &tokens, error, sizeof(error))) {
		report_error(&check->wrong, error);
		return;
	}
	gpd_config_doubt_tokens(config, &tokens, (int64_t)time(NULL), tell, &check->doubts);
	gpd_tokens_free(&tokens);
}

/* 0, or why nothing can be written behind what is there, or a file of this name be made. */
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

/* The certificate of a daemon that has an address of TLS: which addresses it has the command line
 * says, and that may be another one. */
static struct gp_tls *
read_tls(const struct check *check)
{
	struct gpd_options with_tls = *check->options;
	char error[GPD_CONFIG_ERROR_MAX];
	struct gp_tls *tls;

	(void)snprintf(with_tls.listen[0].scheme, sizeof(with_tls.listen[0].scheme), "tls");
	return gpd_tls_read(&with_tls, check->config, &tls, error, sizeof(error)) ? NULL : tls;
}

static void
check_certificate(struct check *check)
{
	const char *const crl = check->config->crl;
	char room[GPD_SHARED_PATH_MAX], doubt[GPD_TLS_DOUBT_MAX];
	const char *path =
		gpd_folder_choose(check->options->crl, crl, GPD_FILE_REVOKED, room, sizeof(room));
	bool named = path && path != room;
	struct gp_tls *tls;
	struct gpd_crl_file file = { 0 };
	int wrong = check->wrong;

	gpd_tls_check_files(check->options, check->config, report_error, &check->wrong);
	tls = wrong == check->wrong ? read_tls(check) : NULL;
	if (tls && gpd_tls_doubt(tls, doubt))
		tell(&check->doubts, doubt);
	gpd_tls_use(tls);
	if (path == crl && access(crl, R_OK)) {
		check_format(check, "crl = %s: %s", crl, strerror(errno));
		return;
	}
	/* With a certificate that cannot be used nothing more is known of the list. */
	if (wrong == check->wrong && gpd_crl_file_open(&file, path, named)) {
		if (tls)
			report_error(&check->wrong, file.file.why);
		else
			doubt_format(check, "%s: with these options the daemon does not start",
				     file.file.why);
	}
	gpd_crl_file_close(&file);
}

/* Addresses and sockets that the daemon opens.  None is made but those of the network, for a
 * moment. */
static void
check_addresses(struct check *check)
{
	const struct gpd_options *options = check->options;
	const struct gpd_config *config = check->config;
	const char *host = options->metrics_given ? options->metrics_host : config->metrics_host;
	uint16_t port = options->metrics_given ? options->metrics_port : config->metrics_port;
	const char *admin = options->admin_socket ? options->admin_socket : config->admin_socket;
	char error[GP_URL_TEXT_MAX + GPD_CONFIG_ERROR_MAX];

	for (int i = 0; i < options->listen_count; i++) {
		const struct gp_url *url = &options->listen[i];

		if (strcmp(url->scheme, "unix") == 0 &&
		    gpd_admin_check(url->host, error, sizeof(error)))
			check_format(check, "cannot listen on unix://%s: %s", url->host, error);
		else if (strcmp(url->scheme, "unix") != 0 &&
			 gpd_listen_check(url, options->insecure, error, sizeof(error)))
			report_error(&check->wrong, error);
	}
	if (*admin && strcmp(admin, "off") != 0 && gpd_admin_check(admin, error, sizeof(error)))
		check_format(check, "no admin socket: %s", error);
	if (*host && gpd_metrics_check(host, port, options->insecure, error, sizeof(error)))
		check_format(check, "no metrics: %s", error);
}

/* As the daemon's user, who reads them again. */
static void
doubt_reload(struct check *check)
{
	char error[GPD_CONFIG_ERROR_MAX];
	struct gp_tls *tls = gpd_tls_get();
	bool had_tls = tls != NULL;

	gp_tls_put(tls);
	tls = NULL;
	if (check->config->file && access(check->config->file, R_OK))
		doubt_format(
			check,
			"%s: the daemon's user cannot read it: changes of it will not be seen, "
			"and a reload fails",
			check->config->file);
	if (had_tls && gpd_tls_read(check->options, check->config, &tls, error, sizeof(error)))
		doubt_format(check,
			     "the certificate can not be read again, and a reload will fail: %s",
			     error);
	gp_tls_put(tls);
}

/* This process becomes the daemon's user, who reads some files again and writes others.  None is
 * made: its owner would be another than the daemon's user. */
static void
check_as_user(struct check *check)
{
	const struct gpd_config *config = check->config;
	const char *const names[] = { GPD_FILE_TOKENS, GPD_FILE_REVOKED };
	const char *const options[] = { check->options->tokens, check->options->crl };
	const char *const configured[] = { config->tokens, config->crl };
	char error[GPD_CONFIG_ERROR_MAX], room[GPD_SHARED_PATH_MAX];
	uid_t before = geteuid();
	int r;

	if (gpd_privilege_drop(check->options->user, error, sizeof(error)))
		report_error(&check->wrong, error);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && geteuid() != before; i++) {
		const char *path =
			gpd_folder_choose(options[i], configured[i], names[i], room, sizeof(room));

		if (path && gpd_privilege_need_file(path, error, sizeof(error)))
			report_error(&check->wrong, error);
	}
	if (geteuid() != before)
		doubt_reload(check);
	r = *config->usage ? check_writable(config->usage) : 0;
	if (r)
		check_format(check, "usage = %s: %s", config->usage, strerror(r));
}

static int
finish(const struct check *check, const char *path)
{
	const char *usual = check->options->usual_config;

	if (check->wrong)
		(void)fprintf(stderr,
			      "gpupoold: %s: the daemon does not start with it: %d error%s\n",
			      path ? path : "no configuration", check->wrong,
			      check->wrong == 1 ? "" : "s");
	else if (!path)
		printf("no configuration: no quotas (%s is read if it is there)\n",
		       *usual ? usual : "--config");
	else
		printf("%s: can be used: %d tenant%s, %d warning%s\n", path,
		       check->config->tenant_count, check->config->tenant_count == 1 ? "" : "s",
		       check->doubts, check->doubts == 1 ? "" : "s");
	return check->wrong ? 1 : 0;
}

int
gpd_check_config(const struct gpd_options *options)
{
	const char *path = gpd_options_config(options);
	struct check check = { .options = options };
	char error[GPD_CONFIG_ERROR_MAX];
	struct gpd_config *config;
	int status;

	/* What the functions of the daemon would log is said here. */
	gpd_log_level = GPD_LOG_ERROR;
	if (gpd_config_load_all(path, report_error, &check.wrong, &config, error, sizeof(error))) {
		if (!check.wrong)
			report_error(&check.wrong, error);
		return finish(&check, path);
	}
	check.config = config;
	gpd_config_doubt(config, tell, &check.doubts);
	check_certificate(&check);
	check_tokens(&check);
	check_addresses(&check);
	check_as_user(&check);
	check_devices(&check);
	status = finish(&check, path);
	gpd_tls_use(NULL);
	gpd_config_free(config);
	return status;
}
