/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps descriptors of the library above the standard descriptors 0 to 2. A program may run with
 * one of these closed and still print; if a connection got that number, the printed text would be
 * sent to the daemon, bypassing TLS.
 *
 * Threads: any.
 */
#ifndef GP_DESCRIPTOR_H
#define GP_DESCRIPTOR_H

/* Wraps a call that opens a descriptor: returns fd or, if it is 0 to 2, a duplicate above them
 * (close-on-exec) and closes fd. Returns -1 with errno if fd is -1 or no descriptor is left. */
int gp_fd_move_above_stdio(int fd);

/* Occupy the closed ones of descriptors 0 to 2 with placeholders while code of this or another
 * library opens descriptors. Calls nest, across all threads: the placeholders exist from the first
 * open to the last close. A file that the program puts in their place meanwhile is left alone.
 * errno is preserved. */
void gp_stdio_placeholders_open(void);
void gp_stdio_placeholders_close(void);

/* socket() with the placeholders held, close-on-exec. */
int gp_fd_open_socket(int family, int type);

#endif /* GP_DESCRIPTOR_H */
