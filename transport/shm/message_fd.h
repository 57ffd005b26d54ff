/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Socket messages that carry a file descriptor (SCM_RIGHTS): the memory of a shared-memory
 * connection (shm.c), and memory that both ends map.
 *
 * Threads: any. No function waits.
 * Errors: -1 and errno, as recvmsg(2) and sendmsg(2); EAGAIN instead of waiting.
 */
#ifndef GP_MESSAGE_FD_H
#define GP_MESSAGE_FD_H

#include <stddef.h>
#include <sys/types.h>

/* Receives bytes and at most one descriptor; further descriptors of the same message are closed.
 * Returns the number of bytes, 0 at the end of the stream, or -1 with errno. *fd_p is set in all
 * cases: the first descriptor that arrived with the bytes, above 2, close-on-exec and owned by the
 * caller, or -1. */
ssize_t gp_recv_with_fd(int socket_fd, void *bytes, size_t size, int *fd_p);

/* Sends the bytes together with the descriptor, which stays open in the caller. Returns the number
 * of bytes sent, or -1 with errno; fewer bytes than `size` may be sent. A closed peer gives EPIPE,
 * without SIGPIPE. */
ssize_t gp_send_with_fd(int socket_fd, void *bytes, size_t size, int fd);

#endif /* GP_MESSAGE_FD_H */
