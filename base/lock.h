/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: which function needs which, and waits with a limit.
 *
 * A function that is called under a lock says so behind its parameters, GP_LOCKED(lock), and a
 * variable that a lock guards behind its name, GP_GUARDED_BY(lock). scripts/threadsafety.py has
 * clang check both; no comment says it again. A name ends in _locked only where the same name
 * without it takes the lock. What is left to a comment, "under X", is what clang 14 cannot be told
 * in C: members that are guarded by a member beside them, and locks that a header does not show.
 * base/lock_order.txt is the order of locks. Clang knows a lock by how it is written, so whoever
 * takes session->sender.lock for such a function writes it like that, not through a pointer of his
 * own.
 *
 * Waits with a limit go by the clock of base/clock.h. A condition variable goes by the clock that
 * it was made for, so all are made here, and pthread_cond_init(), PTHREAD_COND_INITIALIZER and
 * pthread_cond_timedwait() are nobody else's. All of this works with a C library that has no
 * pthread_cond_clockwait().
 */
#ifndef GP_LOCK_H
#define GP_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef GP_CHECK_LOCKS
/* The lock is the caller's when it returns; was; is, if it returns that. */
#define GP_LOCKS(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define GP_UNLOCKS(...) __attribute__((release_capability(__VA_ARGS__)))
#define GP_TRY_LOCKS(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
/* It is called under the lock, which it may give back meanwhile. */
#define GP_LOCKED(...) __attribute__((requires_capability(__VA_ARGS__)))
#define GP_GUARDED_BY(lock) __attribute__((guarded_by(lock)))
/* One that returns with a lock or without it, as its result says, or a child after fork(). */
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

/* For one that nobody holds for longer than a system call takes: who wants it looks for it before
 * he sleeps, and so its holder need not wake anybody. */
void gp_lock_init_adaptive(pthread_mutex_t *lock);

void gp_cond_init(pthread_cond_t *cond);

/* For one of static storage, it is made before main() begins. */
#define GP_COND_CONSTRUCTOR(cond) GP_COND_CONSTRUCTOR_(cond, __LINE__)
#define GP_COND_CONSTRUCTOR_(cond, line) GP_COND_CONSTRUCTOR__(cond, line)
#define GP_COND_CONSTRUCTOR__(cond, line)                                                          \
	static void __attribute__((constructor)) gp_cond_constructor_##line(void)                  \
	{                                                                                          \
		gp_cond_init(&(cond));                                                             \
	}                                                                                          \
	struct gp_cond_constructor

/* Until somebody signals or the time is at_ns; GP_FOREVER: no limit.  false: the time is over. */
bool gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns)
	GP_LOCKED(*lock);

/* Whether it is the caller's before the time is at_ns.  For one that others have for long: who
 * waits looks a thousand times a second. */
bool gp_lock_until(pthread_mutex_t *lock, uint64_t at_ns) GP_TRY_LOCKS(true, *lock);

#endif /* GP_LOCK_H */
