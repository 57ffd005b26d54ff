/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that have come and not begun: each address has its part of those that may.  Root and
 * the daemon's own user go first, within that part: another user of this machine may be any number
 * of users.
 */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_state.h"
#include "transport/socket/socket_owner.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* Connections that have not said Hello, or wait for their refusal; each has a thread. */
#define HANDSHAKES_MAX 128
#define HANDSHAKES_OF_ADDRESS 32
/* Connections that wait for one of these to be done, as descriptors allow: a job's programs come at
 * once, each with its lane's connection, and none may be turned away for that. */
#define WAITING_MIN 256
#define WAITING_MAX 2048
/* Nobody is dropped who is slow only by the network's fault, or by that of a machine whose
 * processors many programs want at once. */
#define SILENCE_MS 200
#define SPOKEN_MS 2000
/* Descriptors for the administrator, the workers and the files of the daemon. */
#define DESCRIPTORS_KEPT 64

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

static unsigned int
waiting_max(void)
{
	unsigned int part = (unsigned int)descriptors() / 8;

	return part < WAITING_MIN ? WAITING_MIN : part > WAITING_MAX ? WAITING_MAX : part;
}

/* The next one after the link; begins it, or closes it. */
static void
take_out(struct gpd_admission *admission, struct gpd_peer **link, bool begin)
{
	struct gpd_peer *peer = *link;

	*link = peer->next;
	admission->waiting_count--;
	peer->source->waiting--;
	if (begin && gpd_peer_start(peer) == 0) {
		gpd_admission_add(admission, peer);
		return;
	}
	gpd_source_count_wasted(peer->source, gp_now_ms());
	gpd_peer_destroy(peer);
}

/* How much an address is in the way of others that has so many. */
static unsigned int
weigh(const struct gpd_source *source, unsigned int count)
{
	return source->own && count <= HANDSHAKES_OF_ADDRESS ? 0 : count;
}

static unsigned int
weigh_waiting(const struct gpd_peer *waiting)
{
	return weigh(waiting->source, waiting->source->waiting);
}

/* There are too many: any one of the addresses that have most of them, but not who has just come:
 * else nobody would come in any more once all places are held. */
static void
drop_one(struct gpd_admission *admission, const struct gpd_peer *newcomer)
{
	struct gpd_peer **link = &admission->waiting;
	unsigned int most = 0, count = 0, chosen = 0;

	for (struct gpd_peer *w = admission->waiting; w; w = w->next) {
		if (w == newcomer || weigh_waiting(w) < most)
			continue;
		count = weigh_waiting(w) > most ? 1 : count + 1;
		most = weigh_waiting(w);
	}
	(void)!getrandom(&chosen, sizeof(chosen), GRND_NONBLOCK);
	chosen %= count;
	while (*link == newcomer || weigh_waiting(*link) < most || chosen-- > 0)
		link = &(*link)->next;
	gpd_source_log((*link)->source, GPD_LOG_WARNING,
		       "%s: closed: too many connections without a session come from there",
		       gp_conn_peer((*link)->conn));
	take_out(admission, link, false);
}

static struct gpd_source *
find_source(int fd, const char *peer_name)
{
	uid_t owner;
	bool known = gp_peer_owner(fd, &owner) == 0;

	return gpd_source_get(peer_name, known ? &owner : NULL);
}

/* Why a connection is closed at once, or NULL. */
static const char *
why_closed(const struct gpd_source *source, int fd)
{
	if (gpd_source_is_wasteful(source, gp_now_ms()))
		return "too many connections without a session come from there";
	if (fd >= descriptors())
		return "the descriptors that are left are for sessions and the administrator";
	return NULL;
}

/* GP_E_EOF: the address has no room for it. */
static int
make_peer(const struct gpd_admission *admission, struct gpd_source *source, int fd,
	  const char *peer_name, const char *scheme, struct gpd_peer **peer_p)
{
	unsigned int timeout_ms = atomic_load(&admission->quota->ledger->timeout_ms);
	const char *why = why_closed(source, fd);
	struct gp_conn *conn;
	int r = GP_E_EOF;

	if (why)
		gpd_source_log(source, GPD_LOG_WARNING, "%s: closed: %s", peer_name, why);
	else
		r = gp_conn_adopt(scheme, fd, &conn);
	if (r) {
		close(fd);
		return r == -ENOMEM ? GP_E_RESOURCE : GP_E_EOF;
	}
	*peer_p = gpd_peer_create(conn, scheme, timeout_ms);
	return *peer_p ? 0 : GP_E_RESOURCE;
}

int
gpd_admission_come(struct gpd_admission *admission, int fd, const char *peer_name,
		   const char *scheme)
{
	struct gpd_peer **link = &admission->waiting;
	struct gpd_source *source = find_source(fd, peer_name);
	struct gpd_peer *peer;
	int r = make_peer(admission, source, fd, peer_name, scheme, &peer);

	if (r) {
		gpd_source_put(source);
		return r;
	}
	peer->source = source;
	peer->deadline_ms = gp_now_ms() + GPD_HANDSHAKE_MS;
	while (*link && (!source->own || (*link)->source->own))
		link = &(*link)->next;
	peer->next = *link;
	*link = peer;
	admission->waiting_count++;
	source->waiting++;
	gpd_admission_begin(admission);
	if (admission->waiting_count > waiting_max())
		drop_one(admission, peer);
	return 0;
}

static bool
is_full(const struct gpd_source *source)
{
	return source->handshakes >= HANDSHAKES_OF_ADDRESS;
}

/* What it has said its thread may not have had the time to read. */
static bool
has_spoken(const struct gpd_peer *peer)
{
	int unread = 0;

	return atomic_load(&peer->spoke) ||
	       (ioctl(gp_conn_fd(peer->conn), FIONREAD, &unread) == 0 && unread > 0);
}

/* From when on it may have to make room for others. */
static int64_t
due_ms(const struct gpd_peer *peer)
{
	return peer->deadline_ms - GPD_HANDSHAKE_MS + (has_spoken(peer) ? SPOKEN_MS : SILENCE_MS);
}

/*
 * Who has kept silent for longest makes room: of the source itself if that has all its places, else
 * of the one that has most.  False: they are all new.
 */
static bool
make_room(struct gpd_admission *admission, const struct gpd_source *source)
{
	struct gpd_peer *victim = NULL;
	int64_t earliest = 0;

	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		unsigned int held, most;
		int64_t due;

		if (p->state != GPD_PEER_HANDSHAKE || (is_full(source) && p->source != source))
			continue;
		held = weigh(p->source, p->source->handshakes);
		most = victim ? weigh(victim->source, victim->source->handshakes) : 0;
		if (victim && held < most)
			continue;
		due = due_ms(p);
		if (!victim || held > most || due < earliest) {
			victim = p;
			earliest = due;
		}
	}
	if (!victim || earliest > gp_now_ms())
		return false;
	gpd_source_log(victim->source, GPD_LOG_INFO,
		       "%s: no session: it did not say hello while others wait",
		       gp_conn_peer(victim->conn));
	gpd_admission_end_peer(admission, victim, "it did not say hello");
	return true;
}

void
gpd_admission_begin(struct gpd_admission *admission)
{
	struct gpd_peer **link = &admission->waiting;
	int64_t now_ms = gp_now_ms();

	while (*link) {
		struct gpd_peer *waiting = *link;
		bool full = is_full(waiting->source);
		bool room = admission->handshakes < HANDSHAKES_MAX && !full;
		/* Where nobody makes room for one of them, nobody does for the others. */
		int64_t *stuck_ms = full ? &waiting->source->stuck_ms : &admission->stuck_ms;

		if (waiting->deadline_ms <= now_ms) {
			gpd_source_log(waiting->source, GPD_LOG_WARNING,
				       "%s: closed: too many others without a session come from "
				       "there",
				       gp_conn_peer(waiting->conn));
			take_out(admission, link, false);
			continue;
		}
		if (!room && *stuck_ms != now_ms) {
			room = make_room(admission, waiting->source);
			*stuck_ms = room ? 0 : now_ms;
		}
		if (room)
			take_out(admission, link, true);
		else
			link = &waiting->next;
	}
}

void
gpd_admission_forget_waiting(struct gpd_admission *admission)
{
	while (admission->waiting)
		take_out(admission, &admission->waiting, false);
}
