/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeout for a silent peer, from GPUPOOL_TIMEOUT (seconds) or its older form GPUPOOL_STALL_MS
 * (milliseconds), which applies only if the former is not set.
 *
 * Both are whole numbers, without fraction or unit. GPUPOOL_TIMEOUT is 1 to GP_TIMEOUT_MAX.
 * GPUPOOL_STALL_MS is 0 (no limit) to INT_MAX; a larger number counts as INT_MAX.
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
 * Returns 0 with *ms_p set to the timeout in milliseconds, where 0 means no limit (older form
 * only), and `text` to a warning or "". *given_p is false if neither variable is set; *ms_p is then
 * the default, GP_CONN_TIMEOUT_MS (transport.h).
 * Returns GP_E_INVALID if the value that applies is invalid; `text` then names the variable, its
 * value and valid values, *given_p is true, and *ms_p is undefined. size: bytes of `text`, at least
 * 1; a longer text is truncated.
 */
GP_MUST_CHECK int gp_timeout_parse(const char *seconds, const char *milliseconds,
				   unsigned int *ms_p, bool *given_p, char *text, size_t size);

/* Returns the timeout in milliseconds for values that gp_timeout_parse() accepts, 0 for no limit;
 * returns GP_CONN_TIMEOUT_MS for invalid values. */
unsigned int gp_timeout_get_ms(const char *seconds, const char *milliseconds);

/* Size of the text of gp_timeout_format(), with its NUL. */
#define GP_TIMEOUT_TEXT_MAX 24
/* Formats a timeout for messages: "30 s" or "0.600 s". 0 is formatted as "0 s"; the caller handles
 * a timeout without limit. */
void gp_timeout_format(unsigned int ms, char text[GP_TIMEOUT_TEXT_MAX]);

#endif /* GP_TIMEOUT_H */
