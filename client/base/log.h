/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library says on stderr: nothing, unless GPUPOOL_LOG names what it shall say, the session
 * cannot be opened or ends before the program wants it to, the daemon tells something untrue of an
 * image, the program calls what is not supported, or something of the environment is likely to be a
 * mistake. Any thread, at any time. Errors are kept besides (log_kept.h).
 */
#ifndef GPC_LOG_H
#define GPC_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* The words of GPUPOOL_LOG. */
enum gpc_log {
	GPC_LOG_ERROR = 1 << 0,  /* why a session ended, which posted call failed */
	GPC_LOG_INFO = 1 << 1,   /* sessions opened, devices seen */
	GPC_LOG_STATS = 1 << 2,  /* statistics at exit */
	GPC_LOG_TABLES = 1 << 3, /* requests for private tables */
	GPC_LOG_CALLS = 1 << 4,  /* every call that is sent */
	GPC_LOG_QUIET = 1 << 5,  /* no warnings: not a word of calls that are not supported */
};

bool gpc_log_is_enabled(enum gpc_log category);

/* One line, "gpupool: ...", in printable ASCII, when the word was given. */
void gpc_log(enum gpc_log category, const char *text, ...) GP_PRINTF(2, 3);

/* One line whatever GPUPOOL_LOG says; but not twice in a row the same. */
void gpc_log_always(const char *text, ...) GP_PRINTF(1, 2);

/* The same, unless GPUPOOL_LOG says quiet: what may be a mistake. */
void gpc_log_warn(const char *text, ...) GP_PRINTF(1, 2);

/* Reads a comma-separated list of words; unknown ones are skipped. */
unsigned int gpc_log_parse(const char *list);
/* GP_E_INVALID: the list (NULL: none) has a word that is none of them, and error says which there
 * are. */
GP_MUST_CHECK int gpc_log_check(const char *list, char *error, size_t error_size);

#endif /* GPC_LOG_H */
