/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/options.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

const char *
gpd_options_config(const struct gpd_options *options)
{
	const char *usual = options->usual_config;

	if (options->config)
		return options->config;
	/* One that is there and cannot be read is not the same as none: who has quotas means them.
	 */
	if (!usual[0] || (access(usual, F_OK) && (errno == ENOENT || errno == ENOTDIR)))
		return NULL;
	return usual;
}
