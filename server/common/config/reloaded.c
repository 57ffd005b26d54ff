/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/reloaded.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Behind what stands there already. */
static void
append(char text[GPD_RELOADED_TEXT_MAX], const char *before, const char *what)
{
	size_t used = strlen(text);

	(void)snprintf(text + used, GPD_RELOADED_TEXT_MAX - used, "%s%s", used ? "; " : before,
		       what);
}

void
gpd_reloaded_say(struct gpd_reloaded *reloaded, enum gpd_log_level level, const char *format, ...)
{
	char text[GPD_RELOADED_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log(level, "%s", text);
	if (level == GPD_LOG_WARNING)
		append(reloaded->warning, "", text);
	else
		append(reloaded->error, "not all of it is in force: ", text);
}

void
gpd_reloaded_join(struct gpd_reloaded *reloaded)
{
	if (reloaded->error[0] && reloaded->warning[0])
		append(reloaded->error, "", reloaded->warning);
}
