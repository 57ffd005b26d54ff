/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log has room for about the sessions of one tenant from one address, so that who is let
 * in cannot fill it: lines of their ordinary life, and warnings besides, whichever process writes
 * them.  What is left out is counted.
 *
 * Voices lie in the ledger, where workers and the supervisor use them up; any thread.  Which one a
 * session has the supervisor says, whose main thread alone may call what is named so.
 */
#ifndef GPD_VOICE_H
#define GPD_VOICE_H

#include "protocol/status.h"
#include "server/common/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_ledger;

/* Beyond so many those that are new share one. */
#define GPD_VOICES 1024
/* So many lines at once, and one more in each of these times: who opens five sessions in each
 * second, all day, loses none. */
#define GPD_VOICE_LINES 1000
#define GPD_VOICE_LINE_MS 100
#define GPD_VOICE_WARNINGS 100
#define GPD_VOICE_WARNING_MS 2000
/* How often what was left out is told. */
#define GPD_VOICE_CHECK_MS 30000

enum gpd_voice_kind {
	GPD_VOICE_NEWS,
	GPD_VOICE_WARNING, /* and errors */
	GPD_VOICE_KINDS,
};

struct gpd_voice {
	_Atomic int64_t until_ms[GPD_VOICE_KINDS]; /* then all that was said is given back */
	_Atomic uint32_t left_out[GPD_VOICE_KINDS];
};

/* Whether there is a line left, which is used up; if not, it is counted. */
bool gpd_voice_may(struct gpd_voice *voice, enum gpd_voice_kind kind, int64_t now_ms);
void gpd_voice_log(struct gpd_voice *voice, enum gpd_log_level level, const char *format, ...)
	GP_PRINTF(3, 4);

/* Supervisor: of this tenant and address, as an index of the ledger's voices.  It is remembered as
 * long as a session has it, or less than all is given back. */
uint32_t gpd_voice_choose(struct gpd_ledger *ledger, const char *tenant, const char *address,
			  int64_t now_ms);
/* Supervisor: says what was left out; when to be called again, INT64_MAX: there is no need. */
int64_t gpd_voice_deadline(void);
void gpd_voice_check(struct gpd_ledger *ledger, int64_t now_ms);
/* Supervisor: there are no sessions any more. */
void gpd_voice_forget_all(struct gpd_ledger *ledger);

#endif /* GPD_VOICE_H */
