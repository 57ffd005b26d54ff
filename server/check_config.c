/* SPDX-License-Identifier: Apache-2.0 */
#include "server/check_config.h"

#include "protocol/admin_messages.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/shared_file.h"
#include "server/common/config/config_doubt.h"
#include "server/common/config/options.h"
#include "server/common/config/token_file.h"
#include "server/supervisor/door/tls_files.h"
#include "server/worker/device/driver.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
check_devices(const struct gpd_config *config, const struct gpd_options *options, int *doubts)
{
	struct gpd_config_device_facts facts[GPD_LEDGER_DEVICES];
	char error[GPD_CONFIG_DOUBT_MAX];
	int count = 0;

	/* As the worker does: it is a real driver, even if a client library is found first. */
	(void)unsetenv("REMOTE_GPU");
	if (gpd_driver_open(options->driver, gpd_options_software(options, config), error,
			    sizeof(error)) ||
	    gpd_driver.cuInit(0) != CUDA_SUCCESS ||
	    gpd_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
		tell(doubts, "no driver with a device can be opened here: what the configuration "
			     "says of devices is not checked (--driver names one)");
		return;
	}
	if (count > GPD_LEDGER_DEVICES)
		count = GPD_LEDGER_DEVICES;
	for (int i = 0; i < count; i++)
		look_at(i, &facts[i]);
	gpd_config_doubt_devices(config, facts, count, tell, doubts);
}

static void
check_tokens(const struct gpd_config *config, const struct gpd_options *options, int *doubts)
{
	char room[GPD_SHARED_PATH_MAX], error[GPD_TOKEN_ERROR_MAX];
	const char *path = gpd_folder_choose(options->tokens, config->tokens, GPD_FILE_TOKENS, room,
					     sizeof(room));
	struct gpd_tokens tokens;

	if (!path)
		return;
	if (gpd_tokens_load(path, &tokens, error, sizeof(error))) {
		tell(doubts, error);
		return;
	}
	gpd_config_doubt_tokens(config, &tokens, (int64_t)time(NULL), tell, doubts);
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

/* How many of the files that it names, or that are where they usually are, keep the daemon from
 * starting.  None is made: its owner would be another than the daemon's user. */
static int
check_files(const struct gpd_config *config, const struct gpd_options *options, int *doubts)
{
	char error[GPD_CONFIG_ERROR_MAX];
	struct gp_tls *tls = NULL;
	int wrong = 0, r;

	if (gpd_tls_read(options, config, &tls, error, sizeof(error))) {
		(void)fprintf(stderr, "gpupoold: %s\n", error);
		wrong++;
	}
	gp_tls_put(tls);
	if (*config->crl && access(config->crl, R_OK)) {
		(void)fprintf(stderr, "gpupoold: crl = %s: %s\n", config->crl, strerror(errno));
		wrong++;
	}
	r = *config->usage ? check_writable(config->usage) : 0;
	if (r) {
		(void)fprintf(stderr, "gpupoold: usage = %s: %s\n", config->usage, strerror(r));
		wrong++;
	}
	if (*config->tokens && access(config->tokens, F_OK)) {
		(void)snprintf(error, sizeof(error), "tokens = %s: %s", config->tokens,
			       strerror(errno));
		tell(doubts, error);
	}
	return wrong;
}

int
gpd_check_config(const struct gpd_options *options)
{
	const char *path = gpd_options_config(options);
	char error[GPD_CONFIG_ERROR_MAX];
	struct gpd_config *config;
	int doubts = 0, wrong = 0;

	if (!path) {
		printf("no configuration: no quotas (%s is read if it is there)\n",
		       options->usual_config[0] ? options->usual_config : "--config");
		return 0;
	}
	if (gpd_config_load_all(path, report_error, &wrong, &config, error, sizeof(error))) {
		if (!wrong)
			report_error(&wrong, error);
		(void)fprintf(stderr,
			      "gpupoold: %s: the daemon does not start with it: %d error%s\n", path,
			      wrong, wrong == 1 ? "" : "s");
		return 1;
	}
	gpd_config_doubt(config, tell, &doubts);
	wrong = check_files(config, options, &doubts);
	check_tokens(config, options, &doubts);
	check_devices(config, options, &doubts);
	if (wrong)
		(void)fprintf(stderr,
			      "gpupoold: %s: the daemon does not start with it: %d error%s\n", path,
			      wrong, wrong == 1 ? "" : "s");
	else
		printf("%s: can be used: %d tenant%s, %d warning%s\n", path, config->tenant_count,
		       config->tenant_count == 1 ? "" : "s", doubts, doubts == 1 ? "" : "s");
	gpd_config_free(config);
	return wrong ? 1 : 0;
}
