/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting threads.  A thread takes no signals but those of its own faults: the others are the main
 * thread's, or the application's.
 */
#ifndef GP_THREAD_H
#define GP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef void *gp_thread_main(void *arg);

/* One that nobody joins.  name: at most 15 characters, for who looks at the process.  stack_size:
 * 0 for the usual one.  0, or a negative errno: there is no memory, or no room for one more. */
int gp_thread_start(const char *name, size_t stack_size, gp_thread_main *main, void *arg)
	__attribute__((warn_unused_result));
/* One that somebody joins: *thread_p. */
int gp_thread_start_joinable(pthread_t *thread_p, const char *name, size_t stack_size,
			     gp_thread_main *main, void *arg) __attribute__((warn_unused_result));

/* Between two looks of a thread that waits for another without sleeping. */
static inline void
gp_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/* The same for who has waited for a while: whoever else wants the processor may have it.  Whether
 * somebody did: then it is better to sleep. */
bool gp_cpu_yield(void);

#endif /* GP_THREAD_H */
