/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lint of gpupoold.conf(5): findings that no single line shows. Errors are settings that contradict
 * each other; gpd_config_load() reports them. Warnings are settings that have another effect than
 * they seem to have: names of absent objects, quotas larger than the device, quotas that rounding
 * removes, settings that the policy of the device ignores.
 *
 * Ownership: arguments need to be valid during the call only.
 * Threads: any; the functions keep no state, and call the report function before they return.
 */
#ifndef GPD_CONFIG_LINT_H
#define GPD_CONFIG_LINT_H

#include "server/common/config/config.h"
#include "server/common/config/token.h"

/* A configuration to check, and the receiver of the findings. */
struct gpd_lint {
	const struct gpd_config *config;
	/* Called once per finding; not NULL. The text begins with file and line if the finding has
	 * them. */
	gpd_config_report_func *report;
	void *arg; /* first argument of report() */
};

/* A device of the machine. */
struct gpd_lint_device {
	char uuid[41]; /* "GPU-..." */
	size_t memory; /* total memory in bytes */
	/* 0: not known, and settings of multiprocessors are not checked. */
	int multiprocessors;
	uint64_t context; /* bytes that a CUDA context takes of it */
};
/* Type of gpd_driver_list() (worker/device/driver.h), which the supervisor's code does not link to
 * otherwise. Loads the driver (NULL: the default library; software: the software device may replace
 * it) and fills devices with its devices, at most GPD_LEDGER_DEVICES, without creating a context.
 * Returns their number, which is also 0 if CUDA does not initialize; or -1 with a text in error if
 * the driver cannot be loaded. */
typedef int gpd_lint_list_devices(const char *driver, bool software,
				  struct gpd_lint_device *devices, char *error, size_t size);

/* Reports errors: a session's limit above that of its tenant, a certificate listed by several
 * tenants, a time share above the limit, time shares of more than 100 % in total on a device with
 * the policy "fixed". Of a tenant's errors on several devices only the first is reported. */
void gpd_lint_errors(const struct gpd_lint *lint);
/* Reports warnings about the file alone. */
void gpd_lint_config(const struct gpd_lint *lint);
/* Reports the warning of gpd_lint_tenant() for the tenants of valid tokens, each tenant once. */
void gpd_lint_tokens(const struct gpd_lint *lint, const struct gpd_tokens *tokens);
/* Reports warnings about devices. devices: indexed by ordinal, at most GPD_LEDGER_DEVICES. Reports
 * nothing if count is 0, which means that the devices are not known. */
void gpd_lint_devices(const struct gpd_lint *lint, const struct gpd_lint_device *devices,
		      int count);

/* Writes what shares of the device's memory refer to. Returns false, and writes nothing, if no
 * tenant has a share of it, or contexts take no memory. devices: as gpd_lint_devices(). */
bool gpd_lint_shares(const struct gpd_config *config, const struct gpd_lint_device *devices,
		     int count, int device, char text[GPD_CONFIG_ERROR_MAX]);
/* Writes the warning that the tenant of a token is not in the configuration. Returns false, and
 * writes nothing, if there is no reason for it: the configuration contains the tenant, was not read
 * from a file, or names no tenants and [tenant default] permits sessions. */
bool gpd_lint_tenant(const struct gpd_config *config, const char *tenant,
		     char text[GPD_CONFIG_ERROR_MAX]);
/* Returns whether a device's policy (enum gpd_policy) ignores the tenant's key ("weight", "limit"
 * or "time-share"): the name of the policy that the key requires, a static text; or NULL if the key
 * has an effect. */
const char *gpd_lint_needed_policy(const char *key, uint32_t policy);

#endif /* GPD_CONFIG_LINT_H */
