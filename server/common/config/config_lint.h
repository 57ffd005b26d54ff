/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lint of gpupoold.conf(5): findings that no line shows alone.  Errors are settings that contradict
 * each other; gpd_config_load() reports them.  Warnings are settings that have another effect than
 * they seem to have: names of absent objects, quotas larger than the device, quotas that rounding
 * removes, settings that the policy of the device ignores.
 *
 * Threads: any; the functions keep no state, and call the report function before they return.
 */
#ifndef GPD_CONFIG_LINT_H
#define GPD_CONFIG_LINT_H

#include "server/common/config/config.h"
#include "server/common/config/token.h"

struct gpd_lint {
	const struct gpd_config *config;
	gpd_config_report_func *report; /* a text that begins with file and line, if it has one */
	void *arg;
};

struct gpd_lint_device {
	char uuid[41]; /* "GPU-..." */
	size_t memory;
	int multiprocessors;
};
/* Opens the driver (NULL: the usual one) and describes its devices, at most GPD_LEDGER_DEVICES,
 * without a context.  Returns their number, 0 also if CUDA does not start; -1: the driver cannot be
 * opened, and error says why. */
typedef int gpd_lint_list_devices(const char *driver, bool software,
				  struct gpd_lint_device *devices, char *error, size_t size);

/* Errors: a session's limit above that of its tenant, a certificate of several tenants, time shares
 * above the limit or of more than 100 %. */
void gpd_lint_errors(const struct gpd_lint *lint);
/* Warnings about the file alone. */
void gpd_lint_config(const struct gpd_lint *lint);
/* About tenants of valid tokens, each tenant once; none without a file. */
void gpd_lint_tokens(const struct gpd_lint *lint, const struct gpd_tokens *tokens);
/* About devices, by ordinal; none if their number is not known (0). */
void gpd_lint_devices(const struct gpd_lint *lint, const struct gpd_lint_device *devices,
		      int count);

/* The warning about a token's tenant; false: there is none. */
bool gpd_lint_tenant(const struct gpd_config *config, const char *tenant,
		     char text[GPD_CONFIG_ERROR_MAX]);
/* The policy that the tenant's key needs on a device with this policy (enum gpd_policy); NULL: the
 * key works with this one. */
const char *gpd_lint_needed_policy(const char *key, uint32_t policy);

#endif /* GPD_CONFIG_LINT_H */
