/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepted connections without a receiver thread yet: the number of started connections is limited,
 * in total and per address. Root and the daemon's own user are first, within their address's limit:
 * another local user can have any number of user IDs.
 */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_internal.h"
#include "transport/socket/socket_owner.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* Connections before Hello or with a delayed refusal; each has a thread. */
#define HANDSHAKES_MAX 128
#define HANDSHAKES_OF_ADDRESS 32
/* Connections that wait until others are finished, limited by the number of descriptors: all
 * programs of a job connect at once, each with a lane, and none may be rejected for that. */
#define WAITING_MIN 256
#define WAITING_MAX 2048
/* Times after which a connection before Hello can be closed in favor of others. They allow for slow
 * networks and for machines with overloaded CPUs. */
#define SILENCE_MS 200
#define SPOKEN_MS 2000
/* Descriptors reserved for the admin socket, the workers and the daemon's files. */
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

/* Removes the connection at the link; starts it, or closes it. */
static void
waiting_remove(struct gpd_admission *admission, struct gpd_connection **link, bool start)
{
	struct gpd_connection *connection = *link;

	*link = connection->next;
	admission->waiting_count--;
	connection->client_address->waiting--;
	if (start && gpd_connection_start(connection) == 0) {
		gpd_admission_add(admission, connection);
		return;
	}
	gpd_client_address_count_wasted(connection->client_address, gp_now_ms());
	gpd_connection_destroy(connection);
}

/* Returns how much an address with this number of connections is at the expense of others. */
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

/* Closes a random connection of the addresses that have most of them, but not the newest: otherwise
 * no client could connect once all entries are in use. */
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

/* Returns why a connection is closed at once, or NULL. */
static const char *
get_closed_reason(const struct gpd_client_address *client_address, int fd)
{
	if (gpd_client_address_is_throttled(client_address, gp_now_ms()))
		return "too many connections without a session from this address";
	if (fd >= descriptors_max())
		return "out of file descriptors";
	return NULL;
}

/* Returns GP_E_EOF if the connection is closed because of its address. */
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
	struct gpd_connection *connection;
	int r = conn_make(admission, client_address, fd, peer_name, scheme, &connection);

	if (r) {
		gpd_client_address_put(client_address);
		return r;
	}
	connection->client_address = client_address;
	connection->deadline_ms = gp_now_ms() + GPD_HANDSHAKE_MS;
	while (*link && (!client_address->is_privileged || (*link)->client_address->is_privileged))
		link = &(*link)->next;
	connection->next = *link;
	*link = connection;
	admission->waiting_count++;
	client_address->waiting++;
	gpd_admission_start_waiting(admission);
	if (admission->waiting_count > waiting_max())
		waiting_drop_one(admission, connection);
	return 0;
}

static bool
addr_is_full(const struct gpd_client_address *client_address)
{
	return client_address->handshakes >= HANDSHAKES_OF_ADDRESS;
}

/* The receiver thread may not have had time to read the data. */
static bool
conn_has_sent(const struct gpd_connection *connection)
{
	int unread = 0;

	return atomic_load(&connection->has_preamble) ||
	       (ioctl(gp_conn_fd(connection->conn), FIONREAD, &unread) == 0 && unread > 0);
}

/* Returns the time after which the connection may be closed in favor of others. */
static int64_t
conn_due_ms(const struct gpd_connection *connection)
{
	return connection->deadline_ms - GPD_HANDSHAKE_MS +
	       (conn_has_sent(connection) ? SPOKEN_MS : SILENCE_MS);
}

/*
 * Closes the connection that has been silent for longest: of the same address if that has reached
 * its limit, else of the address that has most of them. Returns false if all are too new.
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
		/* If no connection could be closed for one of them, none can be for the others. */
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
