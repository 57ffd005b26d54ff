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

/* Wraps a call that opens a descriptor: returns fd or, if it is 0 to 2, a duplicate with a higher
 * number (close-on-exec) and closes fd. The caller owns the result. A negative fd is returned as it
 * is, with errno unchanged; -1 with errno if no descriptor is left, and fd is then closed. */
int gp_fd_move_above_stdio(int fd);

/* Occupies the closed ones of descriptors 0 to 2 with placeholders while code of this or another
 * library opens descriptors. Calls nest, across all threads; each must be followed by a call of
 * gp_stdio_placeholders_close(). If a placeholder cannot be opened, the descriptor stays closed.
 * Preserves errno. */
void gp_stdio_placeholders_open(void);
/* Closes the placeholders if no other call of gp_stdio_placeholders_open() is in effect. A file
 * that the program has put in the place of a placeholder meanwhile is left alone. Preserves
 * errno. */
void gp_stdio_placeholders_close(void);

/* Like socket(), close-on-exec, but never returns descriptor 0 to 2. Returns -1 with errno on
 * failure; the caller closes the descriptor. */
int gp_fd_open_socket(int family, int type);

#endif /* GP_DESCRIPTOR_H */
