/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread creation and busy waiting. Threads are created with all signals blocked except those of
 * their own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL), so that other signals are delivered to the
 * main thread or to the application's threads.
 */
#ifndef GP_THREAD_H
#define GP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef void *gp_thread_main(void *arg);

/* Starts a detached thread. name: at most 15 characters, shown by debuggers and ps. stack_size: 0
 * for the default. Returns 0 or a negative errno: out of memory, or the limit on threads is
 * reached. */
int gp_thread_start(const char *name, size_t stack_size, gp_thread_main *main, void *arg)
	__attribute__((warn_unused_result));
/* The same for a thread that the caller joins through *thread_p. */
int gp_thread_start_joinable(pthread_t *thread_p, const char *name, size_t stack_size,
			     gp_thread_main *main, void *arg) __attribute__((warn_unused_result));

/* Pauses the processor between two polls of a busy-waiting thread. */
static inline void
gp_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/* The same after a longer busy wait: yields the processor. Returns true if another thread ran
 * meanwhile; the caller should then sleep instead of busy waiting. */
bool gp_cpu_yield(void);

#endif /* GP_THREAD_H */
