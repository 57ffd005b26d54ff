/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll(2) that also works when the program has lowered its descriptor limit (RLIMIT_NOFILE). The
 * system's poll() fails with EINVAL if it is passed more descriptors than the limit allows, even if
 * they were opened earlier; this function then uses pselect6().
 *
 * Threads: any.
 * Errors: -1 and errno as poll(), EINTR included; when pselect6() is used, also EBADF (one of the
 * descriptors is not open) and ENOMEM.
 */
#ifndef GP_FD_POLL_H
#define GP_FD_POLL_H

#include "base/status.h"

#include <poll.h>

/* Waits at most timeout_ms milliseconds (negative: no limit) until a descriptor is ready. Returns
 * the number of entries whose revents is not 0, 0 after the timeout, or -1 with errno set. Entries
 * with a negative fd are ignored.
 * When pselect6() is used, revents contains requested events only: a readable, closed or failed
 * descriptor gets all requested ones of POLLIN and POLLRDNORM; a writable one gets all of POLLOUT
 * and POLLWRNORM. A socket gets POLLRDHUP when it is closed or failed and no byte is left to read;
 * if only POLLRDHUP is requested and bytes are left, the result may be 0 before the timeout.
 * POLLHUP, POLLERR and POLLNVAL are never set. */
GP_MUST_CHECK int gp_fd_poll(struct pollfd *pollers, nfds_t count, int timeout_ms);

#endif /* GP_FD_POLL_H */
