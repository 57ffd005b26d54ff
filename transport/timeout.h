/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUPOOL_TIMEOUT: for how long a peer may be silent, in seconds; and its earlier form,
 * GPUPOOL_STALL_MS, in milliseconds.
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
/* A day, in seconds. */
#define GP_TIMEOUT_MAX 86400

/*
 * What the values of the two variables mean, NULL or "" for one that is not set.
 * GP_E_INVALID, and the text names the variable, its value and what would be right.
 * Else 0, with *ms_p: 0 without limit (of the earlier form only), and *given_p: whether either is
 * set, else *ms_p is the default.  The text is a warning then, or "".
 */
GP_MUST_CHECK int gp_timeout_parse(const char *seconds, const char *milliseconds,
				   unsigned int *ms_p, bool *given_p, char *text, size_t size);

/* Of gp_timeout_parse() that was asked before. */
unsigned int gp_timeout_get_ms(const char *seconds, const char *milliseconds);

/* "30 s" or "0.6 s", for messages. */
#define GP_TIMEOUT_TEXT_MAX 24
void gp_timeout_format(unsigned int ms, char text[GP_TIMEOUT_TEXT_MAX]);

#endif /* GP_TIMEOUT_H */
