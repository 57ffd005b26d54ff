/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership marks for the library's file descriptors. The program may close all descriptors, as
 * daemons do, and open files of its own that get the same numbers.
 *
 * A descriptor is marked when it is opened. Before a write, read or close that the kernel would
 * also allow on another kind of file, the library checks the mark. The mark is the signal number of
 * F_SETSIG (fcntl(2)), which gpupool does not use otherwise. It belongs to the open file
 * description, not to the number: duplicates share it. fstat() is not sufficient, because all
 * eventfds and epoll sets of a machine look alike to it.
 *
 * If a sandbox forbids setting marks, or later reading them, every open descriptor is assumed to be
 * the library's.
 *
 * Threads: any.
 */
#ifndef GP_PRIVATE_FD_H
#define GP_PRIVATE_FD_H

#include <stdbool.h>

/* Marks a descriptor that was just opened by the library. Has no effect if fd is negative. */
void gp_fd_guard_mark(int fd);
/* Returns whether the number still refers to a marked file; false if it is closed or negative.
 * Costs one system call, usually. */
bool gp_fd_guard_is_marked(int fd);
/* Closes the descriptor, unless the number is not marked, because it now belongs to the program or
 * is closed. */
void gp_fd_guard_close(int fd);

#endif /* GP_PRIVATE_FD_H */
