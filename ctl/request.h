/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the daemon: each connects to the admin socket, sends one request and waits for the
 * reply.
 *
 * Ownership: requests are borrowed; the caller frees replies with gp_admin_free_reply().
 * Threads: called by the main thread only.
 * Errors: functions that return int return 0; or -1 after a one-line message on standard error, and
 * there is no reply to free. An error that the daemon reports is such an error.
 */
#ifndef CTL_REQUEST_H
#define CTL_REQUEST_H

#include "protocol/admin_messages.h"

#include <stdint.h>

/* Global options of gpupoolctl. */
struct ctl {
	/* Path of the admin socket; NULL: the user's own daemon, else the system's. */
	const char *socket;
	int format; /* enum ctl_format (table.h) */
};

/* Timeout in milliseconds of a request that the daemon executes at once. */
#define CTL_TIMEOUT_MS 10000
/* Timeout of a request that the daemon may execute for any time. */
#define CTL_NO_TIMEOUT (-1)

/* Sends a request and waits for the reply, which is stored in *reply_p. The wait ends timeout_ms
 * after the call (CTL_NO_TIMEOUT: never); connecting and sending are not limited. Prints the
 * daemon's warning, if the reply contains one. */
int ctl_request(const struct ctl *ctl, const Gpupool__AdminRequest *request, int64_t timeout_ms,
		Gpupool__AdminReply **reply_p);
/* As ctl_request(), for a request whose reply contains nothing but an error or a warning. */
int ctl_request_status(const struct ctl *ctl, const Gpupool__AdminRequest *request,
		       int64_t timeout_ms);
/* Requests a report and waits for it at most CTL_TIMEOUT_MS. session: ID of the only session in the
 * report; 0: all sessions. On success the reply contains a report, and each device index in it is
 * less than n_devices. */
int ctl_request_report(const struct ctl *ctl, uint64_t session, Gpupool__AdminReply **reply_p);

/* Flushes standard output, then prints the program's name and the formatted message to standard
 * error. Returns -1. */
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "gpupoolctl: warning: " and the formatted message to standard error. */
void ctl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* CTL_REQUEST_H */
