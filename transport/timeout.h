/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeout for a silent peer, from GPUPOOL_TIMEOUT (seconds) or its older form GPUPOOL_STALL_MS
 * (milliseconds).
 *
 * Threads: any.
 */
#ifndef GP_TIMEOUT_H
#define GP_TIMEOUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define GP_TIMEOUT_NAME "GPUPOOL_TIMEOUT"
#define GP_TIMEOUT_OLD_NAME "GPUPOOL_STALL_MS"
/* A day; seconds. */
#define GP_TIMEOUT_MAX 86400

/*
 * Parses the values of both variables; NULL or "" if unset. GP_E_INVALID: text names the variable,
 * its value and valid values. Otherwise returns 0; *ms_p: the timeout, where 0 is no limit (older
 * form only); *given_p: false if neither is set and *ms_p is the default; text: a warning or "".
 */
GP_MUST_CHECK int gp_timeout_parse(const char *seconds, const char *milliseconds,
				   unsigned int *ms_p, bool *given_p, char *text, size_t size);

/* Returns the timeout for values that gp_timeout_parse() has accepted. */
unsigned int gp_timeout_get_ms(const char *seconds, const char *milliseconds);

/* Formats a timeout for messages: "30 s" or "0.6 s". */
#define GP_TIMEOUT_TEXT_MAX 24
void gp_timeout_format(unsigned int ms, char text[GP_TIMEOUT_TEXT_MAX]);

#endif /* GP_TIMEOUT_H */
