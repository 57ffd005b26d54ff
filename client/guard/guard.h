/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call guard: per-thread marker of the library call that the thread executes.
 *
 * A signal handler may interrupt a thread anywhere in a call, while the thread owns locks of the
 * library. Code that then runs on the thread (exit handlers, fork handlers, library calls by the
 * signal handler) must not wait for these locks. The guard lets such code detect the situation:
 *
 *   a call within a call   gpc_guard_enter() refuses it; the caller returns
 *                          CUDA_ERROR_NOT_PERMITTED
 *   exit, fork             gpc_guard_is_inside(): the handlers of the library do nothing that needs
 *                          a lock or memory
 *   thread cancellation    disabled from gpc_guard_enter() to gpc_guard_leave(), so that no thread
 *                          ends while it owns a lock; after gpc_guard_enter_quick() only from
 *                          gpc_guard_block() on, because disabling it costs a tenth of the time
 *                          that a kernel launch takes
 *
 * A call that a signal handler has left by longjmp() does not count, because its stack frame is
 * gone.
 *
 * Threads: the state is thread-local; any thread. All functions are async-signal-safe and never
 * wait.
 */
#ifndef GPC_GUARD_H
#define GPC_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* State of the calling thread. */
struct gpc_guard {
	const void *frame; /* stack frame of the outermost call of the library; NULL: the thread is
			      not in a call */
	bool blocking;     /* the guard has disabled thread cancellation */
	/* the thread's cancellation state before that; valid if `blocking` is set */
	int cancel_state;
};

/* Used only by the inline functions below and gpc_guard_has_frame(). */
extern __thread struct gpc_guard gpc_guard __attribute__((tls_model("initial-exec")));

/* Returns whether the stack frame belongs to the call that gpc_guard.frame records, or to code that
 * has interrupted it. Returns false if it belongs to a caller of that call, so that longjmp() must
 * have left the call. gpc_guard.frame must not be NULL. */
bool gpc_guard_has_frame(const void *frame);

/* Returns whether the current code runs inside a call of the library on this thread. */
static inline __attribute__((always_inline)) bool
gpc_guard_is_inside(void)
{
	return gpc_guard.frame && gpc_guard_has_frame(__builtin_frame_address(0));
}

/* Disables thread cancellation until the call ends. Called before each cancellation point, such as
 * a blocking system call. Has no effect outside of calls, as in the library's own threads, and if
 * cancellation is disabled already. */
static inline void
gpc_guard_block(void)
{
	if (gpc_guard.blocking || !gpc_guard.frame)
		return;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &gpc_guard.cancel_state);
	gpc_guard.blocking = true;
}

/* Marks the start of a call and returns true; gpc_guard_leave() must follow. Returns false if the
 * thread is already in a call; the new call must then fail without calling gpc_guard_leave(). Does
 * not disable cancellation. For short calls (QUICK in codegen/api) and for code that calls
 * gpc_guard_block() itself. */
static inline __attribute__((always_inline)) bool
gpc_guard_enter_quick(void)
{
	if (__builtin_expect(gpc_guard.frame != NULL, 0) && gpc_guard_is_inside())
		return false;
	gpc_guard.frame = __builtin_frame_address(0);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* Marks the start of a call like gpc_guard_enter_quick(), with the same result, and disables thread
 * cancellation until gpc_guard_leave(). */
static inline __attribute__((always_inline)) bool
gpc_guard_enter(void)
{
	if (!gpc_guard_enter_quick())
		return false;
	gpc_guard_block();
	return true;
}

/* Ends the call, and restores the thread's cancellation state from before the call. */
static inline __attribute__((always_inline)) void
gpc_guard_leave(void)
{
	if (gpc_guard.blocking) {
		gpc_guard.blocking = false;
		(void)pthread_setcancelstate(gpc_guard.cancel_state, NULL);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gpc_guard.frame = NULL;
}

/* Clears the guard before a callback of the program that may call the library. Returns the previous
 * state, which the caller passes to gpc_guard_set() after the callback. If cancellation was
 * disabled, it stays so. The calling thread must not own a lock of the library. */
static inline struct gpc_guard
gpc_guard_clear(void)
{
	struct gpc_guard before = gpc_guard;

	gpc_guard.frame = NULL;
	gpc_guard.blocking = false;
	return before;
}

/* Restores the state that gpc_guard_clear() returned. */
static inline void
gpc_guard_set(struct gpc_guard before)
{
	gpc_guard = before;
}

#endif /* GPC_GUARD_H */
