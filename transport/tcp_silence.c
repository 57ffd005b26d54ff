/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp_silence.h"

#include "base/clock.h"
#include "transport/transport.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Number of keepalive probes, in the second half of the time. */
#define PROBES 3
/* The kernel counts whole seconds, and two probes need three. A single probe can be lost: in the
 * network, or because both ends probed at once. The second probe is then discarded as an old packet
 * if its timestamp is older than that of the previous acknowledgment (seen with Linux 6.18 on
 * loopback). */
#define SECONDS_MIN 3
/* Maximum that the kernel accepts, in seconds. */
#define PROBE_MAX_S 32767
/* A live peer acknowledges within this time, even a segment that is sent for the third time. */
#define SILENCE_MIN_MS 750

static void
socket_set_option(int fd, int level, int option, unsigned int value)
{
	int number = (int)value;

	/* Local sockets do not support these options. */
	(void)setsockopt(fd, level, option, &number, sizeof(number));
}

/* Returns the idle time before the first probe. The kernel counts in seconds, at least one for each
 * interval. */
static unsigned int
get_first_probe_s(unsigned int seconds)
{
	unsigned int idle = seconds / 2;

	if (idle > PROBE_MAX_S)
		idle = PROBE_MAX_S;
	return idle ? idle : 1;
}

void
gp_tcp_set_keepalive(int fd, unsigned int ms)
{
	unsigned int seconds = (ms ? ms : GP_CONN_TIMEOUT_MS) / 1000, idle, rest, count;

	if (seconds < SECONDS_MIN)
		seconds = SECONDS_MIN;
	idle = get_first_probe_s(seconds);
	rest = seconds - idle;
	count = rest < PROBES ? rest : PROBES;
	socket_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	socket_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
	socket_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL,
			  rest / count < PROBE_MAX_S ? rest / count : PROBE_MAX_S);
	socket_set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, count);
}

void
gp_tcp_set_user_timeout(int fd, unsigned int ms)
{
	if (ms && ms < SECONDS_MIN * 1000)
		ms = SECONDS_MIN * 1000;
	socket_set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

static bool
socket_get_info(int fd, struct tcp_info *info)
{
	socklen_t length = sizeof(*info);

	*info = (struct tcp_info){ 0 };
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0;
}

static bool
socket_has_unsent(int fd)
{
	int queued = 0;

	return ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > 0;
}

/* A single unanswered probe proves nothing: its acknowledgment may be in transit, or the probe was
 * lost. */
static bool
info_is_retransmitting(const struct tcp_info *info)
{
	return info->tcpi_unacked ? info->tcpi_retransmits > 0 : info->tcpi_probes > 1;
}

/* If no data is in flight, the peer only acknowledges probes, which also takes time. */
static bool
info_may_be_unanswered(int fd, const struct tcp_info *info, uint64_t heard_ms, unsigned int ms)
{
	uint64_t probed_ms = get_first_probe_s(ms / 1000) * (uint64_t)1000;

	return info->tcpi_state == TCP_CLOSE || info->tcpi_unacked || socket_has_unsent(fd) ||
	       heard_ms >= probed_ms + SILENCE_MIN_MS;
}

bool
gp_tcp_is_silent(int fd, unsigned int ms)
{
	struct tcp_info info;
	uint64_t heard_ms;

	if (!socket_get_info(fd, &info))
		return false;
	heard_ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv
								      : info.tcpi_last_data_recv;
	if (heard_ms < SILENCE_MIN_MS)
		return false;
	/* Probes of a closed window become less frequent, so the last acknowledgment may be half of
	 * the time old. The counters of a connection that the kernel has closed are 0. */
	return (info.tcpi_state == TCP_CLOSE || info_is_retransmitting(&info)) &&
	       heard_ms * 4 >= (uint64_t)ms * 3 && info_may_be_unanswered(fd, &info, heard_ms, ms);
}

unsigned int
gp_tcp_get_unacknowledged_ms(int fd, int64_t *since_ms)
{
	int64_t now = gp_now_ms(), waited;
	struct tcp_info info;

	if (!socket_get_info(fd, &info) || (info.tcpi_unacked == 0 && info.tcpi_probes == 0)) {
		*since_ms = 0;
		return 0;
	}
	if (*since_ms == 0)
		*since_ms = now;
	if (!info_is_retransmitting(&info))
		return 0;
	waited = now - *since_ms;
	return waited < info.tcpi_last_ack_recv ? (unsigned int)waited : info.tcpi_last_ack_recv;
}
