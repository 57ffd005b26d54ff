/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoolctl doctor: checks the pool's files and the daemon, and prints problems with their
 * remedies, one per line, or as a table for programs. It changes nothing. The checks are in
 * doctor_files.c and doctor_daemon.c.
 *
 * Order: ctl_doctor() (command.h) sets folder and user, then calls ctl_doctor_files() and, if the
 * daemon has replied, ctl_doctor_daemon().
 * Ownership: ctl_doctor() initializes and frees the struct ctl_doctor; the checks fill it.
 * Threads: called by the main thread only.
 * Errors: none; a failed check is reported as a problem.
 */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

#include "ctl/pool_file.h"
#include "ctl/request.h"
#include "ctl/table.h"
#include "server/common/config/config.h"
#include "server/common/config/token.h"

/* State of one run. */
struct ctl_doctor {
	char folder[CTL_PATH_MAX]; /* path of the pool's folder */
	struct gpd_config *config; /* the configuration, owned; NULL: it cannot be read */
	struct gpd_tokens tokens;  /* content of the token file, owned */
	bool tokens_unknown; /* the token file exists, but cannot be read; `tokens` is then empty */
	char user[33];       /* user that the daemon runs as or would run as; "": unknown */
	int problems, notes; /* numbers of each reported so far */
	enum ctl_format format;
	struct ctl_table findings; /* reports so far, for formats other than CTL_FORMAT_TABLE */
};

/* Reports a problem, which prevents the pool from working as configured, and increments `problems`.
 * Prints the line at once with CTL_FORMAT_TABLE; otherwise adds a row to `findings`. */
void ctl_problem(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* As ctl_problem(), for an observation that does not prevent the pool from working; increments
 * `notes`. */
void ctl_note(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* As ctl_problem(), for a successful check; counts nothing. */
void ctl_ok(struct ctl_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* doctor_files.c: checks the folder, the configuration, tokens and certificates. Stores the
 * configuration and the tokens in *doctor. */
void ctl_doctor_files(struct ctl_doctor *doctor);
/* doctor_daemon.c: checks the daemon's state, addresses and devices. Connects to each of the
 * daemon's network addresses and waits at most 2 s for each. report: of ctl_request_report()
 * (request.h). */
void ctl_doctor_daemon(struct ctl_doctor *doctor, const Gpupool__AdminReport *report);

#endif /* CTL_DOCTOR_H */
