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

/* Main function of a thread. The result is returned by pthread_join(); detached threads return
 * NULL. */
typedef void *gp_thread_main(void *arg);

/* Starts a detached thread. name: at most 15 characters, shown by debuggers and ps; it is copied.
 * stack_size: in bytes; 0 for the default. arg: must stay valid as long as the thread uses it.
 * Returns 0; or a negative errno, and arg is then unused and stays the caller's: -EAGAIN: out of
 * memory, or the limit on threads is reached; -EINVAL: stack_size is below the system's minimum. */
int gp_thread_start(const char *name, size_t stack_size, gp_thread_main *main, void *arg)
	__attribute__((warn_unused_result));
/* Like gp_thread_start(), but the thread is not detached: on success the caller must join
 * *thread_p. On failure *thread_p is undefined. */
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

/* Yields the processor, for a thread that has polled with gp_cpu_relax() for some microseconds.
 * Returns true if this took more than 10 us, which means that another thread ran meanwhile; the
 * caller should then sleep instead of busy waiting. */
bool gp_cpu_yield(void);

#endif /* GP_THREAD_H */
