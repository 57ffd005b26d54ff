/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/size_text.h"

#include <stdio.h>

char *
gpd_size_format(uint64_t bytes, char text[GPD_SIZE_TEXT_MAX])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	int unit = 0;

	for (; value >= 1024 && unit < 6; unit++)
		value /= 1024;
	(void)snprintf(text, GPD_SIZE_TEXT_MAX,
		       value == (double)(uint64_t)value ? "%.0f %s" : "%.1f %s", value,
		       units[unit]);
	return text;
}
