/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detection of an unresponsive peer machine on a TCP connection: whether the machine still
 * acknowledges data. If only the peer's process is stopped, its kernel acknowledges; a network that
 * drops packets does not.
 *
 * Ownership: descriptors stay the caller's.
 * Threads: any. No function waits.
 * Errors: for a descriptor that is not a TCP socket the functions do nothing, and return false or
 * 0.
 * Units: milliseconds; keepalive counts whole seconds.
 */
#ifndef GP_TCP_SILENCE_H
#define GP_TCP_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Enables TCP keepalive so that reading fails with ETIMEDOUT if the peer's machine has been silent
 * for `ms`; less than 3 s counts as 3 s. 0: GP_CONN_TIMEOUT_MS (transport.h). */
void gp_tcp_set_keepalive(int fd, unsigned int ms);

/* Sets TCP_USER_TIMEOUT: the connection fails with ETIMEDOUT if the peer has acknowledged nothing,
 * or has kept its window closed, for `ms`; less than 3 s counts as 3 s. 0: the system's default. */
void gp_tcp_set_user_timeout(int fd, unsigned int ms);

/* After a connection has timed out: returns whether the peer's machine acknowledged nothing for at
 * least three quarters of the last `ms`, and at least 750 ms, so that the network or the machine is
 * the cause. ms: the timeout that has expired, not 0; for gp_tcp_set_keepalive() the time in
 * effect. */
bool gp_tcp_is_silent(int fd, unsigned int ms);

/* Returns for how many milliseconds the peer's machine has acknowledged nothing although data was
 * retransmitted, or a keepalive or window probe was repeated. 0: everything is acknowledged, or
 * nothing was sent a second time yet. *since_ms is state between
 * calls, initially 0, used by a single thread that calls about once a second. */
unsigned int gp_tcp_get_unacknowledged_ms(int fd, int64_t *since_ms);

#endif /* GP_TCP_SILENCE_H */
