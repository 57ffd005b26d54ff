/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detection of an unresponsive peer machine on a TCP connection: whether it still acknowledges. A
 * stopped process has a kernel that acknowledges; a network that drops packets does not.
 *
 * Threads: any.
 * Errors: for a descriptor that is not a TCP socket the functions do nothing and report "not
 * silent".
 */
#ifndef GP_TCP_SILENCE_H
#define GP_TCP_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Enables TCP keepalive so that reading fails with ETIMEDOUT if the peer's machine has been silent
 * for `ms`, at least 3 s. 0: after 30 s. */
void gp_tcp_set_keepalive(int fd, unsigned int ms);

/* Sets TCP_USER_TIMEOUT: the connection ends if the peer has acknowledged nothing, or kept its
 * window closed, for `ms`, at least 3 s. 0: the system's default. */
void gp_tcp_set_user_timeout(int fd, unsigned int ms);

/* After a connection timed out: whether nothing was acknowledged for most of `ms`, so that the
 * network or the machine is the cause. */
bool gp_tcp_is_silent(int fd, unsigned int ms);

/* Returns for how many milliseconds sent data has remained unacknowledged despite retransmission;
 * 0: everything is acknowledged. *since_ms, initially 0, is state that one thread keeps between its
 * calls, about once a second. */
unsigned int gp_tcp_get_unacknowledged_ms(int fd, int64_t *since_ms);

#endif /* GP_TCP_SILENCE_H */
