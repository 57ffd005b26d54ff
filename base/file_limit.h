/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks SIGXFSZ while a file is extended. If the program has a file size limit (RLIMIT_FSIZE),
 * exceeding it then fails with EFBIG and does not kill the program:
 *
 *   struct gp_sigxfsz limit;
 *
 *   gp_sigxfsz_block(&limit);
 *   r = ftruncate(fd, size) ? -errno : 0;
 *   gp_sigxfsz_restore(&limit);
 *
 * Ownership: the caller provides struct gp_sigxfsz; it needs no cleanup after the restore.
 * Threads: any; the same thread must call both functions. Neither waits.
 * Errors: none.
 */
#ifndef GP_FILE_LIMIT_H
#define GP_FILE_LIMIT_H

#include <signal.h>
#include <stdbool.h>

/* Signal state of a thread between gp_sigxfsz_block() and gp_sigxfsz_restore(). */
struct gp_sigxfsz {
	/* signal mask that the thread had before gp_sigxfsz_block() */
	sigset_t before;
	bool is_pending; /* whether SIGXFSZ was already pending; it is then left to the program */
};

/* Blocks SIGXFSZ in the calling thread and stores the previous signal mask in *limit. Each call
 * must be followed by one gp_sigxfsz_restore() with the same struct. */
void gp_sigxfsz_block(struct gp_sigxfsz *limit);
/* Discards a SIGXFSZ raised since gp_sigxfsz_block() and restores the signal mask. Preserves
 * errno. */
void gp_sigxfsz_restore(const struct gp_sigxfsz *limit);

#endif /* GP_FILE_LIMIT_H */
