/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log of the client library on standard error.
 *
 * By default it prints only what a user must know: a session could not be opened or ended early,
 * the daemon sent false information about an image, the program called an unsupported function, or
 * a setting in the environment is likely to be a mistake. GPUPOOL_LOG enables more. Errors are also
 * stored (log_history.h).
 *
 * Threads: any thread, at any time.
 */
#ifndef GPC_LOG_H
#define GPC_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Categories, selected by the words of GPUPOOL_LOG. */
enum gpc_log {
	GPC_LOG_ERROR = 1 << 0,  /* why a session ended, which posted call failed */
	GPC_LOG_INFO = 1 << 1,   /* sessions opened, devices seen */
	GPC_LOG_STATS = 1 << 2,  /* statistics at exit */
	GPC_LOG_TABLES = 1 << 3, /* requests for private export tables (cuGetExportTable) */
	GPC_LOG_CALLS = 1 << 4,  /* every call that is sent */
	GPC_LOG_QUIET =
		1 << 5, /* suppresses warnings, including those about unsupported functions */
};

bool gpc_log_is_enabled(enum gpc_log category);

/* Prints a line "gpupool: ..." in printable ASCII, if the category is enabled. Stores it if the
 * category is GPC_LOG_ERROR. */
void gpc_log(enum gpc_log category, const char *text, ...) GP_PRINTF(2, 3);

/* Prints and stores a line regardless of GPUPOOL_LOG. A line equal to the last one is not printed
 * again. */
void gpc_log_always(const char *text, ...) GP_PRINTF(1, 2);

/* Prints a line about a possible mistake, unless GPUPOOL_LOG contains quiet. A line equal to the
 * last one is not printed again. */
void gpc_log_warn(const char *text, ...) GP_PRINTF(1, 2);

/* Parses a comma-separated list of words; unknown words are ignored. Returns a mask of enum
 * gpc_log. */
unsigned int gpc_log_parse(const char *list);
/* Returns GP_E_INVALID if the list (NULL: empty) contains an unknown word; then error lists the
 * valid ones. */
GP_MUST_CHECK int gpc_log_check(const char *list, char *error, size_t error_size);

#endif /* GPC_LOG_H */
