/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll(2) in a program that limits its descriptors: poll() itself fails with EINVAL where there are
 * more descriptors to look at than the limit allows (RLIMIT_NOFILE), also when they were opened
 * before.
 *
 * Threads: any.
 */
#ifndef GP_FD_POLL_H
#define GP_FD_POLL_H

#include "base/status.h"

#include <poll.h>

/* As poll().  Below the limit alone POLLHUP and POLLERR come as the events that were asked for. */
GP_MUST_CHECK int gp_fd_poll(struct pollfd *pollers, nfds_t count, int timeout_ms);

#endif /* GP_FD_POLL_H */
