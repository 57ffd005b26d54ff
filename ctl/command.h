/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of gpupoolctl, the tool of administrators. Each receives the arguments after the
 * words that select it: ctl_session() those after "session", ctl_session_set() those after "session
 * set".
 *
 * Ownership: arguments are borrowed. A command may reorder the elements of argv, as it removes its
 * options from it.
 * Threads: called by the main thread only.
 * Errors: commands return 0; or -1 after a message on standard error. ctl_doctor() also returns -1
 * if it has found problems.
 */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include "ctl/request.h"
#include "ctl/table.h"

#include <stdbool.h>

/* A command. */
typedef int ctl_command(const struct ctl *ctl, int count, char **argv);

/* list.c: shows the daemon's status, devices, sessions and tenants. The subcommands session set,
 * session terminate and tenant set are in change.c. */
int ctl_status(const struct ctl *ctl, int count, char **argv);
int ctl_device(const struct ctl *ctl, int count, char **argv);
int ctl_session(const struct ctl *ctl, int count, char **argv);
int ctl_tenant(const struct ctl *ctl, int count, char **argv);

/* worker.c: lists worker processes, or replaces one. */
int ctl_worker(const struct ctl *ctl, int count, char **argv);

/* quarantine.c: lists programs in quarantine, or ends a quarantine. */
int ctl_quarantine(const struct ctl *ctl, int count, char **argv);

/* change.c: changes settings, ends sessions, drains and reloads. */
int ctl_session_set(const struct ctl *ctl, int count, char **argv);
int ctl_session_terminate(const struct ctl *ctl, int count, char **argv);
int ctl_tenant_set(const struct ctl *ctl, int count, char **argv);
int ctl_drain(const struct ctl *ctl, int count, char **argv);
int ctl_reload(const struct ctl *ctl, int count, char **argv);

/* cert.c and revoke.c: certificates of the pool; token.c: tokens of clients. These commands need no
 * daemon. */
int ctl_cert(const struct ctl *ctl, int count, char **argv);
int ctl_token(const struct ctl *ctl, int count, char **argv);

/* top.c: live view; ends at the key q or after a number of updates. */
int ctl_top(const struct ctl *ctl, int count, char **argv);

/* list.c: returns a session's memory limit in bytes on the device of `line`, one of its lines: the
 * smaller of its own limit and its tenant's; UINT64_MAX: no limit. */
uint64_t ctl_memory_limit(const Gpupool__AdminReport *report, const Gpupool__AdminSession *session,
			  const Gpupool__AdminLine *line);

/* list.c: parses a session ID. Returns true, or false after an error message. */
bool ctl_parse_session(const char *text, uint64_t *session_p);
/* list.c: prints "usage: gpupoolctl " and the text to standard error. Returns -1. */
int ctl_usage_error(const char *usage);

/* help.c: describes the commands whose words are the arguments; without arguments all commands. */
int ctl_help(const struct ctl *ctl, int count, char **argv);
/* help.c: prints an error for the subcommand argv[0] of `group`, which is unknown or has wrong
 * arguments, with a suggestion or the usage. group NULL: argv[0] is a first word. count 0: prints
 * only the usage. Returns -1. */
int ctl_unknown(const char *group, int count, char **argv, const char *usage);
/* help.c: returns the first word of the command that is most similar to `word`, a static text, or
 * NULL if none is similar. */
const char *ctl_similar_command(const char *word);

/* usage.c: reads the usage records, which persist across restarts of the daemon. */
int ctl_usage_records(const struct ctl *ctl, int count, char **argv);

/* doctor.c: checks the pool's files and the daemon. */
int ctl_doctor(const struct ctl *ctl, int count, char **argv);

#endif /* CTL_COMMAND_H */
