/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
gpd_options_config(const struct gpd_options *options)
{
	const char *usual = options->usual_config;

	if (options->config)
		return options->config;
	/* A file that exists but cannot be read is an error, not "no file": ignoring it would
	 * remove quotas. */
	if (!usual[0] || (access(usual, F_OK) && (errno == ENOENT || errno == ENOTDIR)))
		return NULL;
	return usual;
}

bool
gpd_options_software_parse(const char *text, enum gpd_config_software *value_p)
{
	bool on = strcmp(text, "on") == 0;

	if (!on && strcmp(text, "off") != 0)
		return false;
	*value_p = on ? GPD_CONFIG_SOFTWARE_ON : GPD_CONFIG_SOFTWARE_OFF;
	return true;
}

bool
gpd_options_software(const struct gpd_options *options, const struct gpd_config *config)
{
	const char *given = getenv(GPD_SOFTWARE_VARIABLE);
	enum gpd_config_software value = options->software_device;

	if (value == GPD_CONFIG_SOFTWARE_UNSET)
		value = (enum gpd_config_software)config->software_device;
	if (value == GPD_CONFIG_SOFTWARE_UNSET && given)
		(void)gpd_options_software_parse(given, &value);
	return value != GPD_CONFIG_SOFTWARE_OFF;
}
