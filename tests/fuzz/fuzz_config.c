/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the configuration: a text is parsed and queried, or rejected with a message. */
#include "server/common/config/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
query(const struct gpd_config *config)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	uint64_t whole = 143771ul << 20;

	check(config->tenant_count >= 1 && config->tenant_count <= GPD_CONFIG_TENANTS);
	for (int i = 0; i < config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &config->tenants[i];
		int found;

		check(gpd_config_tenant_find(config, tenant->name) == i);
		check(tenant->isolation <= GPD_CONFIG_ISOLATION_SHARED_ONLY);
		for (int k = 0; k < GPD_LEDGER_DEVICES; k++) {
			uint64_t memory =
				gpd_config_get_bytes(&config->tenants[i].devices[k].memory, whole);

			check(memory == GPD_NO_LIMIT || (memory > 0 && memory <= whole));
			check(gpd_config_get_sms(&config->tenants[i].devices[k].sm, 132) <= 132);
			check(tenant->devices[k].weight > 0 && tenant->devices[k].limit > 0);
		}
		if (gpd_config_admit(config, NULL, tenant->user_count ? tenant->users[0] : "",
				     "10.1.2.3", &found, error, sizeof(error)))
			check(error[0]);
		else
			check(found <= i || tenant->network_count || i == 0);
	}
	for (int i = 0; i < config->device_rule_count; i++)
		check(gpd_config_device(config, i, config->device_rules[i].uuid).virtual_number);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[GPD_CONFIG_ERROR_MAX] = "";
	char *text = malloc(size + 1);
	struct gpd_config *config;

	check(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (gpd_config_parse(text, "fuzz.conf", &config, error, sizeof(error)) == 0) {
		query(config);
		gpd_config_free(config);
	} else {
		check(strncmp(error, "fuzz.conf:", 10) == 0);
	}
	free(text);
	return 0;
}
