/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/reloaded.h"

#include "server/common/base/log.h"

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

#define NOT_ALL "not all of it is in force: "

#define FORMAT(text, format)                                                                       \
	do {                                                                                       \
		va_list args;                                                                      \
		va_start(args, format);                                                            \
		(void)vsnprintf(text, sizeof(text), format, args);                                 \
		va_end(args);                                                                      \
	} while (0)

void
gpd_reloaded_failed(struct gpd_reloaded *reloaded, const char *format, ...)
{
	char text[GPD_RELOADED_TEXT_MAX];

	FORMAT(text, format);
	gpd_error("%s", text);
	append(reloaded->error, NOT_ALL, text);
}

void
gpd_reloaded_note(struct gpd_reloaded *reloaded, const char *format, ...)
{
	char text[GPD_RELOADED_TEXT_MAX];

	FORMAT(text, format);
	append(reloaded->error, NOT_ALL, text);
}

void
gpd_reloaded_later(struct gpd_reloaded *reloaded, const char *format, ...)
{
	char text[GPD_RELOADED_TEXT_MAX];

	FORMAT(text, format);
	gpd_warning("%s", text);
	append(reloaded->warning, "", text);
}

void
gpd_reloaded_join(struct gpd_reloaded *reloaded)
{
	if (reloaded->error[0] && reloaded->warning[0])
		append(reloaded->error, "", reloaded->warning);
}
