/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of the library's in a program that does with its descriptors what it likes: it may
 * close all numbers, as daemons do, and open files of its own that get them.
 *
 * A descriptor is marked where it is opened.  Whoever is about to write to it, read from it or
 * close it looks for the mark first, where the kernel would not refuse any other kind of file.  The
 * mark belongs to the open file, not to the number: descriptors of the same open file have it, too.
 * What fstat() says would not do: all eventfds and epoll sets of a machine are the same to it.
 *
 * Where a sandbox knows no marks, or from some moment on does not tell them, whatever is open is
 * taken for the library's.  Any thread.
 */
#ifndef GP_FD_GUARD_H
#define GP_FD_GUARD_H

#include <stdbool.h>

void gp_fd_guard_mark(int fd);
/* Whether the number still stands for a file that is marked; one system call. */
bool gp_fd_guard_is_marked(int fd);
/* close(), unless it is somebody else's by now. */
void gp_fd_guard_close(int fd);

#endif /* GP_FD_GUARD_H */
