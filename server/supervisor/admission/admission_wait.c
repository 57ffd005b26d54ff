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
#define DESCRIPTORS_RESERVED 64

static int
descriptors_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > INT32_MAX)
		return INT32_MAX;
	if (files.rlim_cur / 4 < DESCRIPTORS_RESERVED)
		return (int)(files.rlim_cur - files.rlim_cur / 4);
	return (int)files.rlim_cur - DESCRIPTORS_RESERVED;
}

static unsigned int
waiting_max(void)
{
	unsigned int part = (unsigned int)descriptors_max() / 8;

	return part < WAITING_MIN ? WAITING_MIN : part > WAITING_MAX ? WAITING_MAX : part;
}

/* The next one after the link; begins it, or closes it. */
static void
waiting_remove(struct gpd_admission *admission, struct gpd_connection **link, bool start)
{
	struct gpd_connection *peer = *link;

	*link = peer->next;
	admission->waiting_count--;
	peer->client_address->waiting--;
	if (start && gpd_connection_start(peer) == 0) {
		gpd_admission_add(admission, peer);
		return;
	}
	gpd_client_address_count_wasted(peer->client_address, gp_now_ms());
	gpd_connection_destroy(peer);
}

/* How much an address is in the way of others that has so many. */
static unsigned int
addr_weight(const struct gpd_client_address *client_address, unsigned int count)
{
	return client_address->is_privileged && count <= HANDSHAKES_OF_ADDRESS ? 0 : count;
}

static unsigned int
waiting_weight(const struct gpd_connection *waiting)
{
	return addr_weight(waiting->client_address, waiting->client_address->waiting);
}

/* There are too many: any one of the addresses that have most of them, but not who has just come:
 * else nobody would come in any more once all places are held. */
static void
waiting_drop_one(struct gpd_admission *admission, const struct gpd_connection *newcomer)
{
	struct gpd_connection **link = &admission->waiting;
	unsigned int most = 0, count = 0, chosen = 0;

	for (struct gpd_connection *w = admission->waiting; w; w = w->next) {
		if (w == newcomer || waiting_weight(w) < most)
			continue;
		count = waiting_weight(w) > most ? 1 : count + 1;
		most = waiting_weight(w);
	}
	(void)!getrandom(&chosen, sizeof(chosen), GRND_NONBLOCK);
	chosen %= count;
	while (*link == newcomer || waiting_weight(*link) < most || chosen-- > 0)
		link = &(*link)->next;
	gpd_client_address_log(
		(*link)->client_address, GPD_LOG_WARNING,
		"%s: closed: too many connections without a session from this address",
		gp_conn_peer((*link)->conn));
	waiting_remove(admission, link, false);
}

static struct gpd_client_address *
find_addr(int fd, const char *peer_name)
{
	uid_t owner;
	bool known = gp_peer_query_owner(fd, &owner) == 0;

	return gpd_client_address_get(peer_name, known ? &owner : NULL);
}

/* Why a connection is closed at once, or NULL. */
static const char *
get_closed_reason(const struct gpd_client_address *client_address, int fd)
{
	if (gpd_client_address_is_throttled(client_address, gp_now_ms()))
		return "too many connections without a session from this address";
	if (fd >= descriptors_max())
		return "out of file descriptors";
	return NULL;
}

/* GP_E_EOF: the address has no room for it. */
static int
conn_make(const struct gpd_admission *admission, struct gpd_client_address *client_address, int fd,
	  const char *peer_name, const char *scheme, struct gpd_connection **peer_p)
{
	unsigned int timeout_ms = atomic_load(&admission->quota->ledger->timeout_ms);
	const char *why = get_closed_reason(client_address, fd);
	struct gp_conn *conn;
	int r = GP_E_EOF;

	if (why)
		gpd_client_address_log(client_address, GPD_LOG_WARNING, "%s: closed: %s", peer_name,
				       why);
	else
		r = gp_conn_adopt(scheme, fd, &conn);
	if (r) {
		close(fd);
		return r == -ENOMEM ? GP_E_RESOURCE : GP_E_EOF;
	}
	*peer_p = gpd_connection_create(conn, scheme, timeout_ms);
	return *peer_p ? 0 : GP_E_RESOURCE;
}

int
gpd_admission_accept(struct gpd_admission *admission, int fd, const char *peer_name,
		     const char *scheme)
{
	struct gpd_connection **link = &admission->waiting;
	struct gpd_client_address *client_address = find_addr(fd, peer_name);
	struct gpd_connection *peer;
	int r = conn_make(admission, client_address, fd, peer_name, scheme, &peer);

	if (r) {
		gpd_client_address_put(client_address);
		return r;
	}
	peer->client_address = client_address;
	peer->deadline_ms = gp_now_ms() + GPD_HANDSHAKE_MS;
	while (*link && (!client_address->is_privileged || (*link)->client_address->is_privileged))
		link = &(*link)->next;
	peer->next = *link;
	*link = peer;
	admission->waiting_count++;
	client_address->waiting++;
	gpd_admission_start_waiting(admission);
	if (admission->waiting_count > waiting_max())
		waiting_drop_one(admission, peer);
	return 0;
}

static bool
addr_is_full(const struct gpd_client_address *client_address)
{
	return client_address->handshakes >= HANDSHAKES_OF_ADDRESS;
}

/* What it has said its thread may not have had the time to read. */
static bool
conn_has_sent(const struct gpd_connection *peer)
{
	int unread = 0;

	return atomic_load(&peer->has_preamble) ||
	       (ioctl(gp_conn_fd(peer->conn), FIONREAD, &unread) == 0 && unread > 0);
}

/* From when on it may have to make room for others. */
static int64_t
conn_due_ms(const struct gpd_connection *peer)
{
	return peer->deadline_ms - GPD_HANDSHAKE_MS +
	       (conn_has_sent(peer) ? SPOKEN_MS : SILENCE_MS);
}

/*
 * Who has kept silent for longest makes room: of the source itself if that has all its places, else
 * of the one that has most.  False: they are all new.
 */
static bool
conn_evict(struct gpd_admission *admission, const struct gpd_client_address *client_address)
{
	struct gpd_connection *victim = NULL;
	int64_t earliest = 0;

	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		unsigned int weight, most;
		int64_t due;

		if (p->state != GPD_CONNECTION_HANDSHAKE ||
		    (addr_is_full(client_address) && p->client_address != client_address))
			continue;
		weight = addr_weight(p->client_address, p->client_address->handshakes);
		most = victim ? addr_weight(victim->client_address,
					    victim->client_address->handshakes)
			      : 0;
		if (victim && weight < most)
			continue;
		due = conn_due_ms(p);
		if (!victim || weight > most || due < earliest) {
			victim = p;
			earliest = due;
		}
	}
	if (!victim || earliest > gp_now_ms())
		return false;
	gpd_client_address_log(victim->client_address, GPD_LOG_INFO,
			       "%s: no session: no Hello while other connections wait",
			       gp_conn_peer(victim->conn));
	gpd_admission_close_conn(admission, victim, "no Hello");
	return true;
}

void
gpd_admission_start_waiting(struct gpd_admission *admission)
{
	struct gpd_connection **link = &admission->waiting;
	int64_t now_ms = gp_now_ms();

	while (*link) {
		struct gpd_connection *waiting = *link;
		bool full = addr_is_full(waiting->client_address);
		bool room = admission->handshakes < HANDSHAKES_MAX && !full;
		/* Where nobody makes room for one of them, nobody does for the others. */
		int64_t *no_room_ms =
			full ? &waiting->client_address->no_room_ms : &admission->no_room_ms;

		if (waiting->deadline_ms <= now_ms) {
			gpd_client_address_log(waiting->client_address, GPD_LOG_WARNING,
					       "%s: closed: too many connections without a session "
					       "from this address",
					       gp_conn_peer(waiting->conn));
			waiting_remove(admission, link, false);
			continue;
		}
		if (!room && *no_room_ms != now_ms) {
			room = conn_evict(admission, waiting->client_address);
			*no_room_ms = room ? 0 : now_ms;
		}
		if (room)
			waiting_remove(admission, link, true);
		else
			link = &waiting->next;
	}
}

void
gpd_admission_drop_waiting(struct gpd_admission *admission)
{
	while (admission->waiting)
		waiting_remove(admission, &admission->waiting, false);
}
