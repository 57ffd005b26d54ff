/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/reload_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends with "; ", or with `before` if the text is empty. */
static void
report_append(char text[GPD_RELOAD_REPORT_TEXT_MAX], const char *before, const char *what)
{
	size_t used = strlen(text);

	(void)snprintf(text + used, GPD_RELOAD_REPORT_TEXT_MAX - used, "%s%s", used ? "; " : before,
		       what);
}

void
gpd_reload_report_add(struct gpd_reload_report *reloaded, enum gpd_log_level level,
		      const char *format, ...)
{
	char text[GPD_RELOAD_REPORT_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log(level, "%s", text);
	if (level == GPD_LOG_WARNING)
		report_append(reloaded->warning, "", text);
	else
		report_append(reloaded->error, "partly applied: ", text);
}

void
gpd_reload_report_merge(struct gpd_reload_report *reloaded)
{
	if (reloaded->error[0] && reloaded->warning[0])
		report_append(reloaded->error, "", reloaded->warning);
}
