/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock annotations for clang's thread safety analysis, and waits with a deadline.
 *
 * A function that is called with a lock held is declared with GP_LOCKED(lock) after its parameters;
 * a variable that a lock guards is declared with GP_GUARDED_BY(lock) after its name.
 * scripts/threadsafety.py runs clang's check on both, so comments do not repeat them. A name ends
 * in _locked only if a function with the same name but without the suffix acquires the lock itself.
 * Comments of the form "under X" state what clang 14 cannot express in C: members guarded by
 * another member of the same struct, and locks that are not visible in the header.
 * base/lock_order.txt lists the lock order. Clang identifies a lock by its expression, so a caller
 * of a function that needs session->sender.lock must lock it by this expression, not through a
 * pointer of its own.
 *
 * Timed waits use the clock of base/clock.h. A condition variable measures time by the clock that
 * it was created with, so all condition variables are created by gp_cond_init(); no other code uses
 * pthread_cond_init(), PTHREAD_COND_INITIALIZER or pthread_cond_timedwait(). This also works with C
 * libraries that lack pthread_cond_clockwait().
 */
#ifndef GP_LOCK_H
#define GP_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef GP_CHECK_LOCKS
/* A function declared with GP_LOCKS() returns with the lock acquired, with GP_UNLOCKS() released.
 * With GP_TRY_LOCKS() it returns with the lock acquired if its result equals the first argument. */
#define GP_LOCKS(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define GP_UNLOCKS(...) __attribute__((release_capability(__VA_ARGS__)))
#define GP_TRY_LOCKS(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
/* GP_LOCKED(): the function is called with the lock held and returns with it held; it may release
 * and reacquire the lock meanwhile. GP_GUARDED_BY(): the variable is accessed only with the lock
 * held. */
#define GP_LOCKED(...) __attribute__((requires_capability(__VA_ARGS__)))
#define GP_GUARDED_BY(lock) __attribute__((guarded_by(lock)))
/* Excludes a function from the analysis. For functions that return with or without the lock
 * depending on their result, and for functions that run in the child of fork(). */
#define GP_LOCK_UNCHECKED __attribute__((no_thread_safety_analysis))
#else
#define GP_LOCKS(...)
#define GP_UNLOCKS(...)
#define GP_TRY_LOCKS(...)
#define GP_LOCKED(...)
#define GP_GUARDED_BY(lock)
#define GP_LOCK_UNCHECKED
#endif

#ifdef GP_CHECK_LOCKS
int pthread_mutex_lock(pthread_mutex_t *lock) GP_LOCKS(*lock);
int pthread_mutex_unlock(pthread_mutex_t *lock) GP_UNLOCKS(*lock);
int pthread_mutex_trylock(pthread_mutex_t *lock) GP_TRY_LOCKS(0, *lock);
int pthread_rwlock_rdlock(pthread_rwlock_t *lock) __attribute__((acquire_shared_capability(*lock)));
int pthread_rwlock_wrlock(pthread_rwlock_t *lock) GP_LOCKS(*lock);
int pthread_rwlock_unlock(pthread_rwlock_t *lock)
	__attribute__((release_generic_capability(*lock)));
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock) GP_LOCKED(*lock);
#endif

/* Initializes a mutex that is held at most for the duration of a system call. A contending thread
 * spins before it sleeps, so that the holder rarely has to wake a thread. The caller destroys the
 * mutex with pthread_mutex_destroy(). */
void gp_lock_init_adaptive(pthread_mutex_t *lock);

/* Initializes a condition variable for gp_cond_wait_until() and pthread_cond_wait(). The caller
 * destroys it with pthread_cond_destroy(). */
void gp_cond_init(pthread_cond_t *cond);

/* At file scope: defines a constructor that initializes the static condition variable `cond` before
 * main() starts. Such a condition variable is never destroyed. A semicolon must follow. */
#define GP_COND_CONSTRUCTOR(cond) GP_COND_CONSTRUCTOR_(cond, __LINE__)
#define GP_COND_CONSTRUCTOR_(cond, line) GP_COND_CONSTRUCTOR__(cond, line)
#define GP_COND_CONSTRUCTOR__(cond, line)                                                          \
	static void __attribute__((constructor)) gp_cond_constructor_##line(void)                  \
	{                                                                                          \
		gp_cond_init(&(cond));                                                             \
	}                                                                                          \
	struct gp_cond_constructor

/* Waits until the condition variable is signaled or the clock reaches at_ns (GP_FOREVER: no limit).
 * The lock is released during the wait and held again on return. Returns false if the deadline
 * passed (without waiting if it had passed before), otherwise true. Like pthread_cond_wait(), it
 * may wake spuriously. */
bool gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns)
	GP_LOCKED(*lock);

/* For mutexes that may be held for long: polls the mutex, with pauses of at most a millisecond,
 * until it is acquired or the clock reaches at_ns. Tries at least once. Returns true with the mutex
 * locked, or false if the deadline passed. */
bool gp_lock_until(pthread_mutex_t *lock, uint64_t at_ns) GP_TRY_LOCKS(true, *lock);

#endif /* GP_LOCK_H */
