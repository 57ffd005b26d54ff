/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of gpupoolctl.  Each gets its words, the command's own left out, and returns 0 or
 * -1: then standard error has said why.
 */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include "ctl/ask.h"
#include "ctl/table.h"

#include <stdbool.h>
#include <stdio.h>

typedef int ctl_command(const struct ctl *ctl, int count, char **argv);

/* list.c: what there is. */
int ctl_status(const struct ctl *ctl, int count, char **argv);
int ctl_device(const struct ctl *ctl, int count, char **argv);
int ctl_session(const struct ctl *ctl, int count, char **argv);
int ctl_tenant(const struct ctl *ctl, int count, char **argv);

/* worker.c: the worker processes, and their replacement. */
int ctl_worker(const struct ctl *ctl, int count, char **argv);

/* change.c: what is made of it. */
int ctl_session_set(const struct ctl *ctl, int count, char **argv);
int ctl_session_terminate(const struct ctl *ctl, int count, char **argv);
int ctl_tenant_set(const struct ctl *ctl, int count, char **argv);
int ctl_drain(const struct ctl *ctl, int count, char **argv);
int ctl_reload(const struct ctl *ctl, int count, char **argv);

/* cert.c (with revoke.c), token.c: the pool's certificates and the clients' tokens; no daemon is
 * asked. */
int ctl_cert(const struct ctl *ctl, int count, char **argv);
int ctl_token(const struct ctl *ctl, int count, char **argv);

/* top.c. */
int ctl_top(const struct ctl *ctl, int count, char **argv);

/* What a session may have on this line's device: the smaller of its own limit and its tenant's. */
uint64_t ctl_memory_limit(const Gpupool__AdminReport *report, const Gpupool__AdminSession *session,
			  const Gpupool__AdminLine *line);

/* A session's number; false, and standard error says so, if it is none. */
bool ctl_parse_session(const char *text, uint64_t *session_p);
/* "usage: gpupoolctl ..." on standard error; -1. */
int ctl_usage_error(const char *usage);

/* help.c: what each command does.  words: the command's, or none for all of them. */
int ctl_help(const struct ctl *ctl, int count, char **argv);
/* These are no command: what may have been meant, and the usage; -1. */
int ctl_unknown(const char *group, int count, char **argv, const char *usage);
/* The first word of a command that may have been meant, or NULL. */
const char *ctl_similar_command(const char *word);

/* usage.c: what was used, of the records that outlive the daemon. */
int ctl_usage_records(const struct ctl *ctl, int count, char **argv);

/* doctor.c: what is wrong with the pool's files, and with the daemon. */
int ctl_doctor(const struct ctl *ctl, int count, char **argv);

#endif /* CTL_COMMAND_H */
