/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that have come and not begun: each address has its part of those that may. */
#include "server/admission_state.h"
#include "server/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Connections that have not said Hello, or wait for their refusal; each has a thread. */
#define HANDSHAKES_MAX 128
#define HANDSHAKES_OF_ADDRESS 32
/* Connections that wait for one of these to be done. */
#define WAITING_MAX 256
/* Nobody is dropped who is slow only by the network's fault. */
#define SILENCE_MS 200
#define RETRY_MS 50
/* Descriptors for the administrator, the workers and the files of the daemon. */
#define DESCRIPTORS_KEPT 64

struct gpd_waiting {
	struct gpd_waiting *next;
	struct gp_conn *conn;
	struct gpd_caller *caller;
	char scheme[16];
	int64_t since_ms;
};

static int
descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > INT32_MAX)
		return INT32_MAX;
	if (files.rlim_cur / 4 < DESCRIPTORS_KEPT)
		return (int)(files.rlim_cur - files.rlim_cur / 4);
	return (int)files.rlim_cur - DESCRIPTORS_KEPT;
}

/* The next one after the link; begins it, or closes it. */
static void
take_out(struct gpd_admission *admission, struct gpd_waiting **link, bool begin, int64_t now_ms)
{
	struct gpd_waiting *waiting = *link;
	struct gpd_peer *peer;

	*link = waiting->next;
	admission->waiting_count--;
	gpd_caller_count_waiting(waiting->caller, -1);
	peer = begin ? gpd_peer_create(waiting->conn, waiting->scheme) : NULL;
	if (peer) {
		peer->caller = waiting->caller;
		gpd_admission_add(admission, peer, now_ms);
	} else {
		if (!begin)
			gp_conn_destroy(waiting->conn);
		gpd_caller_put(waiting->caller, now_ms);
	}
	free(waiting);
}

/* There are too many: of the address that has most of them the one that came last. */
static void
drop_one(struct gpd_admission *admission, int64_t now_ms)
{
	struct gpd_waiting **victim = &admission->waiting;

	for (struct gpd_waiting **link = &admission->waiting; *link; link = &(*link)->next) {
		if (gpd_caller_waiting((*link)->caller) >= gpd_caller_waiting((*victim)->caller))
			victim = link;
	}
	gpd_caller_log((*victim)->caller, GPD_LOG_WARNING,
		       "%s: closed: too many connections without a session come from there",
		       gp_conn_peer((*victim)->conn));
	take_out(admission, victim, false, now_ms);
}

void
gpd_admission_come(struct gpd_admission *admission, struct gp_conn *conn, const char *scheme,
		   int64_t now_ms)
{
	struct gpd_waiting *waiting = calloc(1, sizeof(*waiting)), **link = &admission->waiting;
	struct gpd_caller *caller;

	if (!waiting) {
		gp_conn_destroy(conn);
		return;
	}
	caller = gpd_caller_get(gp_conn_peer(conn), now_ms);
	if (gp_conn_fd(conn) >= descriptors()) {
		gpd_caller_log(caller, GPD_LOG_WARNING,
			       "%s: closed: the descriptors that are left are for sessions and the "
			       "administrator",
			       gp_conn_peer(conn));
		gpd_caller_put(caller, now_ms);
		gp_conn_destroy(conn);
		free(waiting);
		return;
	}
	waiting->conn = conn;
	waiting->caller = caller;
	waiting->since_ms = now_ms;
	(void)snprintf(waiting->scheme, sizeof(waiting->scheme), "%s", scheme);
	while (*link)
		link = &(*link)->next;
	*link = waiting;
	admission->waiting_count++;
	gpd_caller_count_waiting(caller, 1);
	gpd_admission_begin(admission, now_ms);
	if (admission->waiting_count > WAITING_MAX)
		drop_one(admission, now_ms);
}

static bool
is_full(const struct gpd_caller *caller)
{
	return gpd_caller_handshakes(caller) >= HANDSHAKES_OF_ADDRESS;
}

/*
 * Who has kept silent for longest makes room: of the caller itself if that has all its places, else
 * of the one that has most.  False: they are all new.
 */
static bool
make_room(struct gpd_admission *admission, const struct gpd_caller *caller, int64_t now_ms)
{
	struct gpd_peer *victim = NULL;

	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		unsigned int held = gpd_caller_handshakes(p->caller);
		unsigned int most = victim ? gpd_caller_handshakes(victim->caller) : 0;

		if (p->state != GPD_PEER_HANDSHAKE || (is_full(caller) && p->caller != caller))
			continue;
		if (held > most || (held == most && p->deadline_ms < victim->deadline_ms))
			victim = p;
	}
	if (!victim || victim->deadline_ms - GPD_HANDSHAKE_MS > now_ms - SILENCE_MS)
		return false;
	gpd_caller_log(victim->caller, GPD_LOG_INFO,
		       "%s: no session: it said nothing while others wait",
		       gp_conn_peer(victim->conn));
	gpd_admission_end_peer(admission, victim, "it said nothing");
	return true;
}

void
gpd_admission_begin(struct gpd_admission *admission, int64_t now_ms)
{
	struct gpd_waiting **link = &admission->waiting;
	const struct gpd_caller *stuck = NULL;

	while (*link) {
		struct gpd_waiting *waiting = *link;
		bool room = admission->handshakes < HANDSHAKES_MAX && !is_full(waiting->caller);

		if (waiting->since_ms + GPD_HANDSHAKE_MS <= now_ms) {
			gpd_caller_log(waiting->caller, GPD_LOG_WARNING,
				       "%s: closed: too many others without a session come from "
				       "there",
				       gp_conn_peer(waiting->conn));
			take_out(admission, link, false, now_ms);
			continue;
		}
		if (!room && waiting->caller != stuck) {
			room = make_room(admission, waiting->caller, now_ms);
			stuck = room ? stuck : waiting->caller;
		}
		if (room)
			take_out(admission, link, true, now_ms);
		else
			link = &waiting->next;
	}
	admission->begin_ms = admission->waiting ? now_ms + RETRY_MS : INT64_MAX;
}

void
gpd_admission_forget_waiting(struct gpd_admission *admission, int64_t now_ms)
{
	while (admission->waiting)
		take_out(admission, &admission->waiting, false, now_ms);
}
