/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the daemon: each connects to the admin socket, sends one request and waits for the
 * reply.
 *
 * Threads: one.
 * Errors: 0; or -1 after a one-line message on standard error.
 */
#ifndef CTL_REQUEST_H
#define CTL_REQUEST_H

#include "protocol/admin_messages.h"

#include <stdint.h>

/* Global options of gpupoolctl. */
struct ctl {
	const char *socket; /* NULL: the default one */
	int format;         /* enum ctl_format */
};

/* Timeout in ms of a request that the daemon executes at once. */
#define CTL_TIMEOUT_MS 10000
#define CTL_NO_TIMEOUT (-1)

/* Sends a request. The caller frees *reply_p, whose error is empty: an error of the daemon is
 * printed, and returned as -1. */
int ctl_request(const struct ctl *ctl, const Gpupool__AdminRequest *request, int64_t timeout_ms,
		Gpupool__AdminReply **reply_p);
/* The same for requests whose reply contains only the status. */
int ctl_request_status(const struct ctl *ctl, const Gpupool__AdminRequest *request,
		       int64_t timeout_ms);
/* Requests a report. session: only this one; 0: all. The reply contains a valid report. */
int ctl_request_report(const struct ctl *ctl, uint64_t session, Gpupool__AdminReply **reply_p);

/* Prints "gpupoolctl: ..." (the program's name) to standard error. Returns -1. */
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "gpupoolctl: warning: ..." to standard error. */
void ctl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* CTL_REQUEST_H */
