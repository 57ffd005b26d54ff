/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a file larger in a program that may have a limit for that (RLIMIT_FSIZE): past the limit
 * the call fails with EFBIG, and the program gets no SIGXFSZ, which would end it.
 *
 *	struct gp_sigxfsz limit;
 *
 *	gp_sigxfsz_block(&limit);
 *	r = ftruncate(fd, size) ? -errno : 0;
 *	gp_sigxfsz_restore(&limit);
 *
 * Threads: any; begin and end by one.
 */
#ifndef GP_SIGXFSZ_H
#define GP_SIGXFSZ_H

#include <signal.h>
#include <stdbool.h>

struct gp_sigxfsz {
	sigset_t before;
	bool is_pending; /* the program's own */
};

void gp_sigxfsz_block(struct gp_sigxfsz *limit);
/* Keeps errno. */
void gp_sigxfsz_restore(const struct gp_sigxfsz *limit);

#endif /* GP_SIGXFSZ_H */
