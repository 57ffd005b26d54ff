/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a local socket that bring a descriptor: a connection's memory (shm.c), and memory
 * that both ends map.  Plain calls on the caller's socket, of any thread; neither waits.
 */
#ifndef GP_MESSAGE_FD_H
#define GP_MESSAGE_FD_H

#include <stddef.h>
#include <sys/types.h>

/* As recv(), errno with it.  A descriptor that came with what was read is *fd_p, the caller's; else
 * that is -1. */
ssize_t gp_recv_with_fd(int socket_fd, void *bytes, size_t size, int *fd_p);

/* As send(): the bytes, and the descriptor with them, which stays the caller's. */
ssize_t gp_send_with_fd(int socket_fd, void *bytes, size_t size, int fd);

#endif /* GP_MESSAGE_FD_H */
