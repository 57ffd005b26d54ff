/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of requests at the admin socket. A request that can be decoded is packed again, and
 * executed on a daemon without sessions. */
#include "server/common/base/log.h"
#include "server/supervisor/admin/manage.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
retire(void *arg, pid_t worker)
{
	return worker == 1;
}

static void
reload(void *arg, struct gpd_reload_report *reloaded)
{
	strcpy(reloaded->error, "no");
	strcpy(reloaded->warning, "later");
}

static int
enable_device(void *arg, uint32_t device, char *error, size_t size)
{
	(void)snprintf(error, size, "no");
	return device == 1 ? 0 : GP_E_INVALID;
}

static const struct gpd_manager_callbacks callbacks = { retire, enable_device, reload };
static struct gpd_manager manager;
static struct gpd_admission admission;
static struct gpd_quota quota;

static void
set_up(void)
{
	char error[GPD_CONFIG_ERROR_MAX];

	gpd_log_level = GPD_LOG_ERROR;
	if (gpd_quota_init(&quota, NULL, error) || gpd_admission_init(&admission, &quota, 0, 0))
		abort();
	gpd_manager_init(&manager, &admission, &callbacks, NULL);
	quota.tenants.device_count = 2;
	for (int d = 0; d < 2; d++) {
		quota.tenants.devices[d].memory = (uint64_t)80 << 30;
		quota.tenants.devices[d].multiprocessors = 132;
	}
	/* A tenant to set a quota for. */
	if (!gpd_ledger_open(quota.ledger, 1, GPD_TENANT_DEFAULT, 1))
		abort();
}

static const struct gpd_admin_peer peer = { .pid = 1 };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Gpupool__AdminRequest *request;
	uint8_t *bytes;
	size_t packed;

	if (!quota.ledger)
		set_up();
	request = gp_admin_decode_request(data, size);
	if (!request)
		return 0;
	bytes = gp_admin_pack_request(request, &packed);
	if (!bytes || packed < GP_ADMIN_HEADER_SIZE)
		abort();
	free(bytes);
	if (gpd_manager_handle(&manager, &peer, request, false, &bytes, &packed) == 0) {
		Gpupool__AdminReply *reply;

		if (!bytes || gp_admin_get_size(bytes) + GP_ADMIN_HEADER_SIZE != packed)
			abort();
		reply = gp_admin_decode_reply(bytes + GP_ADMIN_HEADER_SIZE,
					      packed - GP_ADMIN_HEADER_SIZE);
		if (!reply)
			abort();
		gp_admin_free_reply(reply);
		free(bytes);
	}
	gp_admin_free_request(request);
	return 0;
}
