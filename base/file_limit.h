/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a file larger in a program that may have a limit for that (RLIMIT_FSIZE): past the limit
 * the call fails with EFBIG, and the program gets no SIGXFSZ, which would end it.
 *
 *	struct gp_file_limit limit;
 *
 *	gp_file_limit_begin(&limit);
 *	r = ftruncate(fd, size) ? -errno : 0;
 *	gp_file_limit_end(&limit);
 *
 * Threads: any; begin and end by one.
 */
#ifndef GP_FILE_LIMIT_H
#define GP_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

struct gp_file_limit {
	sigset_t before;
	bool is_pending; /* the program's own */
};

void gp_file_limit_begin(struct gp_file_limit *limit);
/* Keeps errno. */
void gp_file_limit_end(const struct gp_file_limit *limit);

#endif /* GP_FILE_LIMIT_H */
