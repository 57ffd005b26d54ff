/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections in which the calling thread must not block: the supervisor's main thread outside of its
 * poll(), and other threads while they own a lock that the main thread acquires.
 *
 * In builds with the address sanitizer the C library's functions that can block are replaced
 * (tests/nonblocking.c): in a section such a call ends the process, and standard error names the
 * function. In other builds the functions do nothing.
 *
 * Threads: any; a section belongs to its thread.
 */
#ifndef GPD_NONBLOCKING_H
#define GPD_NONBLOCKING_H

#ifdef GPD_CHECK_BLOCKING
/* Begins a section of the calling thread. Sections nest. */
void gpd_nonblocking_begin(void);
/* Ends the innermost section of the calling thread. */
void gpd_nonblocking_end(void);
/* Suspends all sections of the calling thread for a call whose wait is bounded in another way,
 * which a comment at the call states. Returns the nesting depth to pass to
 * gpd_nonblocking_reenter(). */
unsigned int gpd_nonblocking_leave(void);
/* Resumes the sections that gpd_nonblocking_leave() has suspended. */
void gpd_nonblocking_reenter(unsigned int depth);
#else
static inline void
gpd_nonblocking_begin(void)
{
}

static inline void
gpd_nonblocking_end(void)
{
}

static inline unsigned int
gpd_nonblocking_leave(void)
{
	return 0;
}

static inline void
gpd_nonblocking_reenter(unsigned int depth)
{
	(void)depth;
}
#endif

#endif /* GPD_NONBLOCKING_H */
