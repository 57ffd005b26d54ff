/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeout for a silent peer, from GPUPOOL_TIMEOUT (seconds) or its older form GPUPOOL_STALL_MS
 * (milliseconds), which applies only if the former is not set.
 *
 * Ownership: texts are borrowed from the caller during the call.
 * Threads: any; pure functions.
 */
#ifndef GP_TIMEOUT_H
#define GP_TIMEOUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define GP_TIMEOUT_NAME "GPUPOOL_TIMEOUT"
#define GP_TIMEOUT_OLD_NAME "GPUPOOL_STALL_MS"
/* Maximum of GPUPOOL_TIMEOUT, in seconds: a day. */
#define GP_TIMEOUT_MAX 86400

/*
 * Parses the values of both variables; NULL or "": not set.
 * Returns 0 with *ms_p set to the timeout, where 0 means unlimited (older form only), and text to a
 * warning or "". *given_p is false if neither variable is set; *ms_p is then the default,
 * GP_CONN_TIMEOUT_MS.
 * Returns GP_E_INVALID if the value that applies is invalid; text then names the variable, its
 * value and valid values, and *ms_p is undefined. size: of text, at least 1; longer texts are
 * truncated.
 */
GP_MUST_CHECK int gp_timeout_parse(const char *seconds, const char *milliseconds,
				   unsigned int *ms_p, bool *given_p, char *text, size_t size);

/* Returns the timeout in milliseconds for values that gp_timeout_parse() has accepted;
 * GP_CONN_TIMEOUT_MS for invalid ones. */
unsigned int gp_timeout_get_ms(const char *seconds, const char *milliseconds);

/* Size of the text of gp_timeout_format(), with its NUL. */
#define GP_TIMEOUT_TEXT_MAX 24
/* Formats a timeout for messages: "30 s" or "0.600 s". */
void gp_timeout_format(unsigned int ms, char text[GP_TIMEOUT_TEXT_MAX]);

#endif /* GP_TIMEOUT_H */
