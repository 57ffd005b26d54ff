/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Socket messages that carry a file descriptor (SCM_RIGHTS): the memory of a shared-memory
 * connection (shm.c), and memory that both ends map. Never waits.
 *
 * Threads: any.
 */
#ifndef GP_MESSAGE_FD_H
#define GP_MESSAGE_FD_H

#include <stddef.h>
#include <sys/types.h>

/* Like recv(), including errno. *fd_p: the descriptor that came with the bytes, owned by the
 * caller, or -1. */
ssize_t gp_recv_with_fd(int socket_fd, void *bytes, size_t size, int *fd_p);

/* Like send(): sends the bytes together with the descriptor, which stays open in the caller. */
ssize_t gp_send_with_fd(int socket_fd, void *bytes, size_t size, int fd);

#endif /* GP_MESSAGE_FD_H */
