/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log of the client library on standard error.
 *
 * By default it prints only messages that a user needs: a session could not be opened or ended
 * early, the daemon sent false information about an image, the program called an unsupported
 * function, or a setting in the environment is likely to be a mistake. GPUPOOL_LOG enables more.
 * Errors are also stored in the error history (log_history.h), which calls the program's log
 * callbacks.
 *
 * Threads: any thread, but not a signal handler, because the functions acquire locks. The caller
 * may hold locks of the library (log_history.h). A call may block in write() on standard error.
 * gpc_log(GPC_LOG_ERROR) and gpc_log_always() run the program's log callbacks before they return.
 * Errors: the log functions return nothing; a line that cannot be written is lost, and one of more
 * than 1023 characters is truncated.
 */
#ifndef GPC_LOG_H
#define GPC_LOG_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Categories of messages; a mask of the words in GPUPOOL_LOG. */
enum gpc_log {
	GPC_LOG_ERROR = 1 << 0, /* "error": the reason why a session ended, and posted calls (sent
				   without waiting for a reply) that failed */
	GPC_LOG_INFO = 1 << 1,  /* "info": sessions opened, devices found */
	GPC_LOG_STATS = 1 << 2, /* "stats": statistics at exit */
	GPC_LOG_TABLES =
		1 << 3, /* "tables": requests for private export tables (cuGetExportTable) */
	GPC_LOG_CALLS = 1 << 4, /* "calls": every call that is sent */
	GPC_LOG_QUIET =
		1 << 5, /* "quiet": suppresses warnings and reports of unsupported functions */
};

/* Returns whether GPUPOOL_LOG contains the word of the category. The variable is read once, on the
 * first call. */
bool gpc_log_is_enabled(enum gpc_log category);

/* Prints a line "gpupool: ..." in printable ASCII on standard error, if the category is enabled. A
 * line of GPC_LOG_ERROR is also stored in the error history, even if it is not printed. text: a
 * printf() format. */
void gpc_log(enum gpc_log category, const char *text, ...) GP_PRINTF(2, 3);

/* Prints a line regardless of GPUPOOL_LOG, and stores it in the error history. A line that equals
 * the previous one of gpc_log_always() or gpc_log_warn() is stored, but not printed. */
void gpc_log_always(const char *text, ...) GP_PRINTF(1, 2);

/* Prints a line about a possible mistake of the user, unless GPUPOOL_LOG contains quiet. The line
 * is not stored in the error history. It is not printed if it equals the previous one of
 * gpc_log_always() or gpc_log_warn(). */
void gpc_log_warn(const char *text, ...) GP_PRINTF(1, 2);

/* Parses a list of words, separated by commas or blanks; unknown words are ignored. Returns a mask
 * of enum gpc_log; 0 if list is NULL. */
unsigned int gpc_log_parse(const char *list);
/* Checks a list in the format of gpc_log_parse(). Returns 0, or GP_E_INVALID with a text in `error`
 * that names the first unknown word and lists the valid ones. NULL is an empty list. */
GP_MUST_CHECK int gpc_log_check(const char *list, char *error, size_t error_size);

#endif /* GPC_LOG_H */
