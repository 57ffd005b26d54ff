/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program may run with one of the descriptors 0 to 2 closed, and still print: what the library
 * opens must not get these numbers, or the text goes to the daemon, past TLS.  Any thread.
 */
#ifndef GP_DESCRIPTOR_H
#define GP_DESCRIPTOR_H

/* Around what opens a descriptor: fd, or another one for the same, closed on exec, that is none of
 * the three; -1 with errno, as of the function whose result this is, or if there is none left. */
int gp_fd_move_above_stdio(int fd);

/* Around what opens them, here or elsewhere: nobody gets the numbers of the three that are closed,
 * from the first hold of this process to the last release.  What the program puts there meanwhile
 * stays.  errno is kept. */
void gp_stdio_placeholders_open(void);
void gp_stdio_placeholders_close(void);

/* socket() within a hold, closed on exec. */
int gp_fd_open_socket(int family, int type);

#endif /* GP_DESCRIPTOR_H */
