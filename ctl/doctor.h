/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoolctl doctor: looks at the pool's files and at the daemon, and says what is wrong and what
 * helps: a line each, "problem" or "note", or a row for programs.  It changes nothing.
 *
 * One thread.  A struct ctl_doctor is the run's; its parts are doctor_files.c and doctor_daemon.c.
 */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

#include "ctl/ask.h"
#include "ctl/pool_file.h"
#include "ctl/table.h"
#include "server/common/config/config.h"
#include "server/common/config/token.h"

struct ctl_doctor {
	char folder[CTL_PATH_MAX];
	struct gpd_config *config; /* NULL: it cannot be read */
	struct gpd_tokens tokens;
	bool tokens_unknown; /* they are there, and cannot be read */
	char user[33];       /* that the daemon is, or would become; "": not known */
	int problems, notes;
	enum ctl_format format;
	struct ctl_table findings; /* of formats that are not for people */
};

/* Something that keeps the pool from working as it is meant to; and what one should know. */
void ctl_problem(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void ctl_note(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* And what was looked at and is well. */
void ctl_ok(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* doctor_files.c: folder, configuration, tokens, certificates. */
void ctl_doctor_files(struct ctl_doctor *doctor);
/* doctor_daemon.c: whether it answers, where it listens, what it serves. */
void ctl_doctor_daemon(struct ctl_doctor *doctor, const Gpupool__AdminReport *report);

#endif /* CTL_DOCTOR_H */
