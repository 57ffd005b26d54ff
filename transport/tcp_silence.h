/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine at the other end of a TCP connection still acknowledges.  A process that is
 * stopped has a kernel that acknowledges; a network that drops packets does not.
 *
 * Threads: any; errors of a descriptor that is not a TCP socket are "not silent".
 */
#ifndef GP_TCP_SILENCE_H
#define GP_TCP_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Lets the system probe an idle connection, so that a silent peer is found after `ms`, and after 3
 * s at the earliest: reading then fails with ETIMEDOUT.  0: after 30 s. */
void gp_tcp_set_keepalive(int fd, unsigned int ms);

/* Lets the system end a connection whose peer has acknowledged nothing, or has kept its window
 * closed, for `ms`, and for 3 s at least; 0: after the system's own time.  A descriptor that is not
 * a TCP socket stays as it is. */
void gp_tcp_set_user_timeout(int fd, unsigned int ms);

/* Whether the system has waited in vain for most of `ms`: why a connection has just timed out. */
bool gp_tcp_is_silent(int fd, unsigned int ms);

/* For how many milliseconds something that was sent has not been acknowledged although it was sent
 * again; 0: the peer acknowledges, or has nothing to acknowledge.  *since_ms, 0 at first, is kept
 * between the calls of one thread, which come every second or so. */
unsigned int gp_tcp_get_unacknowledged_ms(int fd, int64_t *since_ms);

#endif /* GP_TCP_SILENCE_H */
