/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/timeout.h"

#include "transport/transport.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Limited to INT_MAX, the maximum timeout of poll(). */
static bool
number_parse(const char *text, unsigned int *number_p)
{
	unsigned long number;
	char *end;

	number = strtoul(text, &end, 10);
	*number_p = number > INT_MAX ? INT_MAX : (unsigned int)number;
	return isdigit((unsigned char)*text) && !*end;
}

static int
milliseconds_parse(const char *milliseconds, unsigned int *ms_p, char *text, size_t size)
{
	if (!number_parse(milliseconds, ms_p)) {
		(void)snprintf(text, size,
			       GP_TIMEOUT_OLD_NAME
			       "=%s: not a number of milliseconds; use " GP_TIMEOUT_NAME
			       ", in seconds",
			       milliseconds);
		return GP_E_INVALID;
	}
	(void)snprintf(text, size,
		       GP_TIMEOUT_OLD_NAME " is the earlier form of " GP_TIMEOUT_NAME
					   ", which is in seconds: use " GP_TIMEOUT_NAME "=%u",
		       *ms_p == 0              ? GP_TIMEOUT_MAX
		       : *ms_p > INT_MAX - 999 ? GP_TIMEOUT_MAX
					       : (*ms_p + 999) / 1000);
	return 0;
}

int
gp_timeout_parse(const char *seconds, const char *milliseconds, unsigned int *ms_p, bool *given_p,
		 char *text, size_t size)
{
	unsigned int number;

	*ms_p = GP_CONN_TIMEOUT_MS;
	*text = '\0';
	*given_p = true;
	if (!seconds || !*seconds) {
		*given_p = milliseconds && *milliseconds;
		return *given_p ? milliseconds_parse(milliseconds, ms_p, text, size) : 0;
	}
	if (!number_parse(seconds, &number) || number < 1 || number > GP_TIMEOUT_MAX) {
		(void)snprintf(text, size,
			       GP_TIMEOUT_NAME
			       "=%s: not a whole number of seconds from 1 to %d; use "
			       "30, or leave it out",
			       seconds, GP_TIMEOUT_MAX);
		return GP_E_INVALID;
	}
	*ms_p = number * 1000;
	if (milliseconds && *milliseconds)
		(void)snprintf(text, size,
			       GP_TIMEOUT_OLD_NAME " has no effect beside " GP_TIMEOUT_NAME);
	return 0;
}

unsigned int
gp_timeout_get_ms(const char *seconds, const char *milliseconds)
{
	char text[256];
	unsigned int ms;
	bool given;

	return gp_timeout_parse(seconds, milliseconds, &ms, &given, text, sizeof(text)) == 0
		       ? ms
		       : GP_CONN_TIMEOUT_MS;
}

void
gp_timeout_format(unsigned int ms, char text[GP_TIMEOUT_TEXT_MAX])
{
	if (ms % 1000)
		(void)snprintf(text, GP_TIMEOUT_TEXT_MAX, "%u.%03u s", ms / 1000, ms % 1000);
	else
		(void)snprintf(text, GP_TIMEOUT_TEXT_MAX, "%u s", ms / 1000);
}
