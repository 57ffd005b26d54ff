/* SPDX-License-Identifier: Apache-2.0 */
/* The call guard: which calls a signal handler may make during a call, and when a thread can be
 * canceled. */
#include "client/guard/guard.h"
#include "tests/test.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t entered, was_inside;
static sigjmp_buf before_call;

/* Of a handler that calls the library. */
static __attribute__((noinline)) void
call_from_handler(int number)
{
	was_inside = gpc_guard_is_inside();
	entered = gpc_guard_enter();
	if (entered)
		gpc_guard_leave();
}

static __attribute__((noinline)) void
leave_call(int number)
{
	siglongjmp(before_call, 1);
}

static void
handle(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

UNIT_TEST(handler_outside_of_calls_may_call)
{
	handle(call_from_handler, 0);
	(void)raise(SIGUSR1);
	assert_true(entered);
	assert_false(was_inside);
}

UNIT_TEST(handler_within_a_call_is_refused)
{
	handle(call_from_handler, 0);
	for (int i = 0; i < 2; i++) {
		assert_true(i ? gpc_guard_enter() : gpc_guard_enter_quick());
		(void)raise(SIGUSR1);
		gpc_guard_leave();
		assert_false(entered);
		assert_true(was_inside);
	}
	(void)raise(SIGUSR1);
	assert_true(entered);
}

/* Its address may be above or below the thread's own stack. */
UNIT_TEST(handler_on_a_signal_stack_is_refused)
{
	const size_t size = 1 << 16;
	stack_t stack = { .ss_size = size }, none = { .ss_flags = SS_DISABLE };
	char below[1 << 16];

	handle(call_from_handler, SA_ONSTACK);
	for (int i = 0; i < 2; i++) {
		char *memory = malloc(size);

		assert_non_null(memory);
		stack.ss_sp = i ? memory : below;
		assert_int_equal(sigaltstack(&stack, NULL), 0);
		assert_true(gpc_guard_enter());
		(void)raise(SIGUSR1);
		gpc_guard_leave();
		assert_int_equal(sigaltstack(&none, NULL), 0);
		free(memory);
		assert_false(entered);
	}
}

UNIT_TEST(callback_may_call)
{
	struct gpc_guard before;

	handle(call_from_handler, 0);
	assert_true(gpc_guard_enter());
	before = gpc_guard_clear();
	assert_true(gpc_guard_enter());
	gpc_guard_leave();
	gpc_guard_set(before);
	(void)raise(SIGUSR1);
	gpc_guard_leave();
	assert_false(entered);
}

static __attribute__((noinline)) void
call_that_is_left(void)
{
	assert_true(gpc_guard_enter());
	(void)raise(SIGUSR1);
}

UNIT_TEST(call_left_by_longjmp_is_no_call)
{
	int cancel_state;

	handle(leave_call, SA_NODEFER);
	if (!sigsetjmp(before_call, 1))
		call_that_is_left();
	assert_true(gpc_guard_enter());
	gpc_guard_leave();
	assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state), 0);
	assert_int_equal(cancel_state, PTHREAD_CANCEL_ENABLE);
}

static int inside[2], canceled[2];
static bool call_ended;

/* read() is a cancellation point. */
static void *
be_canceled(void *quick)
{
	char byte = 0;

	assert_true(quick ? gpc_guard_enter_quick() : gpc_guard_enter());
	gpc_guard_block();
	assert_int_equal(write(inside[1], &byte, 1), 1);
	assert_int_equal(read(canceled[0], &byte, 1), 1);
	call_ended = true;
	gpc_guard_leave();
	pthread_testcancel();
	return NULL;
}

UNIT_TEST(cancellation_waits_for_the_end_of_a_call)
{
	assert_int_equal(pipe(inside), 0);
	assert_int_equal(pipe(canceled), 0);
	for (int quick = 0; quick < 2; quick++) {
		pthread_t thread;
		void *result;
		char byte;

		call_ended = false;
		assert_int_equal(pthread_create(&thread, NULL, be_canceled, quick ? &quick : NULL),
				 0);
		assert_int_equal(read(inside[0], &byte, 1), 1);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(write(canceled[1], &byte, 1), 1);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_true(call_ended);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
