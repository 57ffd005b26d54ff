/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to the daemon: connects, sends the request and waits for the reply.
 *
 * 0; or -1, and what was wrong is on standard error, in one line.  One thread.
 */
#ifndef CTL_ASK_H
#define CTL_ASK_H

#include "protocol/admin_messages.h"

#include <stdint.h>

/* How gpupoolctl was started. */
struct ctl {
	const char *socket; /* NULL: the usual one */
	int format;         /* enum ctl_format */
};

/* For as long as a request that waits for nothing may take. */
#define CTL_TIMEOUT_MS 10000
#define CTL_NO_TIMEOUT (-1)

/* The reply is the caller's to free; its error is empty.  What the daemon refuses is said here. */
int ctl_request(const struct ctl *ctl, const Gpupool__AdminRequest *request, int64_t timeout_ms,
		Gpupool__AdminReply **reply_p);
/* Of which only the outcome matters. */
int ctl_request_status(const struct ctl *ctl, const Gpupool__AdminRequest *request,
		       int64_t timeout_ms);
/* session: only this one; 0: all.  The reply has a report. */
int ctl_request_report(const struct ctl *ctl, uint64_t session, Gpupool__AdminReply **reply_p);

/* "gpupoolctl: ...", or the name of whichever program, on standard error; returns -1. */
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "gpupoolctl: warning: ..." there. */
void ctl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* CTL_ASK_H */
