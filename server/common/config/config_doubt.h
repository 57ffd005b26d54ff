/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration says that does not do what it seems to: names of what is not there, quotas
 * that are more than there is, that come to no quota when they are rounded, or that the device's
 * policy makes no use of.  It is in force all the same; the daemon's log, a reload and
 * --check-config say it.
 *
 * Any thread.  The texts are told while they are found, and never later.
 */
#ifndef GPD_CONFIG_DOUBT_H
#define GPD_CONFIG_DOUBT_H

#include "server/common/config/config.h"
#include "server/common/config/token.h"

#define GPD_CONFIG_DOUBT_MAX 384

struct gpd_config_device_facts {
	char uuid[41]; /* as in struct gpd_config_device_rule, in lower case */
	uint64_t memory;
	uint32_t multiprocessors;
};

/* A text that begins with file and line, if it is of a line. */
typedef void gpd_config_tell(void *arg, const char *text);

/* Of what the file says by itself. */
void gpd_config_doubt(const struct gpd_config *config, gpd_config_tell *tell, void *arg);
/* Of what it says of devices, when it is known which there are. */
void gpd_config_doubt_devices(const struct gpd_config *config,
			      const struct gpd_config_device_facts *devices, int count,
			      gpd_config_tell *tell, void *arg);
/* Which policy a tenant's weight, limit or time-share needs, where a device of this policy (enum
 * gpd_policy) makes no use of it; NULL: it does. */
const char *gpd_config_policy_needed(const char *key, uint32_t policy);
/* Of the tenants that good tokens name, each once.  Nothing without a file: then none is named. */
void gpd_config_doubt_tokens(const struct gpd_config *config, const struct gpd_tokens *tokens,
			     int64_t now_s, gpd_config_tell *tell, void *arg);
/* Of a tenant that a token is of; false: there is no doubt. */
bool gpd_config_doubt_tenant(const struct gpd_config *config, const char *tenant,
			     char text[GPD_CONFIG_DOUBT_MAX]);

#endif /* GPD_CONFIG_DOUBT_H */
