/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "server/worker/device/driver.h"
#include "server/worker/stream/print.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fake_session one, two, three, four;

static int
setup(void **state)
{
	fake_session_create(&one);
	fake_session_create(&two);
	fake_session_create(&three);
	fake_session_create(&four);
	fake_driver_kernel_text = NULL;
	gpd_print_limit_ns = 30000000000ull;
	return 0;
}

static int
teardown(void **state)
{
	fake_driver_events_pending = false;
	gpd_print_destroy(&one.session);
	gpd_print_destroy(&two.session);
	gpd_print_destroy(&three.session);
	gpd_print_destroy(&four.session);
	fake_session_destroy(&one);
	fake_session_destroy(&two);
	fake_session_destroy(&three);
	fake_session_destroy(&four);
	return 0;
}

static void
launch(struct fake_session *fake)
{
	assert_int_equal(gpd_print_begin(&fake->session, &fake->stream), CUDA_SUCCESS);
	gpd_print_end(&fake->session, &fake->stream);
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(output_reaches_the_session_that_launched)
{
	launch(&one);
	fake_driver_kernel_text = "hello\n";
	gpd_print_flush(&one.session);

	assert_string_equal(one.printed, "hello\n");
	assert_string_equal(two.printed, "");
}

TEST(a_session_that_never_prints_asks_nothing_of_the_driver)
{
	gpd_print_flush(&one.session);
	assert_string_equal(fake_driver_calls, "");

	launch(&one);
	gpd_print_flush(&one.session);
	fake_driver_clear_calls();
	gpd_print_flush(&one.session);
	assert_string_equal(fake_driver_calls, "");
}

TEST(another_sessions_launch_delivers_what_was_printed_before)
{
	launch(&one);
	fake_driver_kernel_text = "of one";
	launch(&two);
	fake_driver_kernel_text = "of two";
	gpd_print_flush(&two.session);
	gpd_print_flush(&one.session);

	assert_string_equal(one.printed, "of one");
	assert_string_equal(two.printed, "of two");
}

TEST(text_for_which_there_is_no_memory_is_lost_and_what_is_sent_is_given_back)
{
	struct gpd_ledger_session *entry = one.session.account.entry;

	one.ledger->host_max = 0;
	assert_true(gpd_ledger_charge_host(one.ledger, entry, GPD_HOST_MIN));
	launch(&one);
	fake_driver_kernel_text = "lost";
	gpd_print_flush(&one.session);
	assert_string_equal(one.printed, "");
	gpd_ledger_uncharge_host(one.ledger, entry, GPD_HOST_MIN);
	launch(&one);
	fake_driver_kernel_text = "told";
	gpd_print_flush(&one.session);
	assert_string_equal(one.printed, "told");
	assert_int_equal(entry->host, 0);
}

static void *
finish_later(void *unused)
{
	usleep(100000);
	fake_driver_kernel_text = "late, of one";
	fake_driver_events_pending = false;
	return unused;
}

TEST(a_launch_waits_for_another_sessions_printing_kernels)
{
	pthread_t thread;

	launch(&one);
	fake_driver_events_pending = true;
	assert_int_equal(pthread_create(&thread, NULL, finish_later, NULL), 0);
	launch(&two);
	pthread_join(thread, NULL);
	gpd_print_flush(&one.session);

	assert_string_equal(one.printed, "late, of one");
	assert_string_equal(two.printed, "");
	gpd_print_flush(&two.session);
	assert_string_equal(one.complained, "");
	assert_string_equal(two.complained, "");
}

static void *
complete_later(void *arg)
{
	struct timespec pause = { .tv_nsec = 50000000 };

	nanosleep(&pause, NULL);
	fake_driver_kernel_text = "of one";
	gpd_print_end(&one.session, &one.stream);
	return NULL;
}

TEST(a_launch_that_another_session_is_just_making_is_waited_for)
{
	pthread_t thread;

	assert_int_equal(gpd_print_begin(&one.session, &one.stream), CUDA_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, complete_later, NULL), 0);
	launch(&two);
	pthread_join(thread, NULL);
	gpd_print_flush(&one.session);
	gpd_print_flush(&two.session);

	assert_string_equal(one.printed, "of one");
	assert_string_equal(two.printed, "");
}

TEST(whoever_has_waited_for_too_long_and_whoever_it_waited_for_are_told_once)
{
	gpd_print_limit_ns = 100000000ull;
	launch(&one);
	fake_driver_events_pending = true;
	launch(&two);
	assert_string_equal(two.complained, "");
	gpd_print_flush(&two.session);
	gpd_print_flush(&one.session);
	assert_non_null(strstr(two.complained, "output of device printf may be lost"));
	assert_non_null(strstr(one.complained, "output of device printf may be lost"));

	one.complained[0] = two.complained[0] = 0;
	launch(&one);
	gpd_print_flush(&one.session);
	gpd_print_flush(&two.session);
	assert_string_equal(one.complained, "");
	assert_string_equal(two.complained, "");
}

static void *
end_later(void *unused)
{
	usleep(100000);
	atomic_store(&two.session.closing, true);
	return unused;
}

TEST(a_session_that_ends_does_not_wait_any_longer)
{
	pthread_t thread;

	launch(&one);
	fake_driver_events_pending = true;
	assert_int_equal(pthread_create(&thread, NULL, end_later, NULL), 0);
	assert_int_not_equal(gpd_print_begin(&two.session, &two.stream), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	two.session.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
	two.session.closing = false;
	assert_int_not_equal(gpd_print_begin(&two.session, &two.stream), CUDA_SUCCESS);
	two.session.sticky = CUDA_SUCCESS;

	/* It is still the other's turn. */
	fake_driver_kernel_text = "of one";
	fake_driver_events_pending = false;
	gpd_print_flush(&one.session);
	assert_string_equal(one.printed, "of one");
}

static void *
launch_two(void *unused)
{
	launch(&two);
	return unused;
}

TEST(whoever_waits_is_let_in_before_the_owners_next_launch)
{
	pthread_t waits, finishes;

	launch(&one);
	fake_driver_events_pending = true;
	assert_int_equal(pthread_create(&waits, NULL, launch_two, NULL), 0);
	usleep(50000);
	assert_int_equal(pthread_create(&finishes, NULL, finish_later, NULL), 0);
	launch(&one);
	pthread_join(waits, NULL);
	pthread_join(finishes, NULL);
	fake_driver_kernel_text = "of one again";
	gpd_print_flush(&one.session);
	gpd_print_flush(&two.session);

	assert_string_equal(one.printed, "late, of oneof one again");
	assert_string_equal(two.printed, "");
}

TEST(what_cannot_be_told_apart_is_nobodys)
{
	gpd_print_limit_ns = 100000000ull;
	launch(&one);
	fake_driver_events_pending = true;
	launch(&two);
	fake_driver_kernel_text = "of one or of two";
	gpd_print_flush(&two.session);
	assert_string_equal(two.printed, "");
	fake_driver_events_pending = false;
	fake_driver_kernel_text = "still of either";
	gpd_print_flush(&two.session);
	launch(&two);
	fake_driver_kernel_text = "of two";
	gpd_print_flush(&two.session);

	assert_string_equal(one.printed, "");
	assert_string_equal(two.printed, "of two");
}

TEST(more_output_than_the_pipe_holds_does_not_stop_the_driver)
{
	size_t size = (3 << 20) + 7;
	char *text = malloc(size + 1);

	memset(text, 'x', size);
	text[size] = 0;
	launch(&one);
	fake_driver_kernel_text = text;
	/* The fake stores only as much as it has room for; the test is that this call returns. */
	one.printed[0] = 0;
	gpd_print_flush(&one.session);
	free(text);
	assert_int_equal(strlen(one.printed), FAKE_TEXT - 1);
}

TEST(a_session_that_ends_leaves_its_output_to_nobody)
{
	launch(&one);
	fake_driver_kernel_text = "last words";
	gpd_print_destroy(&one.session);
	assert_string_equal(one.printed, "last words");
	launch(&two);
	gpd_print_flush(&two.session);

	assert_string_equal(two.printed, "");
}

#define STEP_NS UINT64_C(1000000000)

/* Events by the number of their creation, from 1; bit n: the kernels before event n run. */
static _Atomic uint32_t events_made, events_running;

/* A session's launch in a thread of its own. */
struct launcher {
	struct fake_session *fake;
	pthread_t thread;
	_Atomic uint32_t polls; /* queries of events so far */
	_Atomic bool launched;
	uint64_t waited_ns; /* valid when `launched` */
};

static __thread struct launcher *launcher;

static CUresult
numbered_event_create(CUevent *event, unsigned int flags)
{
	uint32_t number = atomic_fetch_add(&events_made, 1) + 1;

	atomic_fetch_or(&events_running, UINT32_C(1) << number);
	*event = (CUevent)(uintptr_t)number;
	return CUDA_SUCCESS;
}

static CUresult
numbered_event_query(CUevent event)
{
	if (launcher)
		atomic_fetch_add(&launcher->polls, 1);
	return atomic_load(&events_running) >> (uintptr_t)event & 1 ? CUDA_ERROR_NOT_READY
								    : CUDA_SUCCESS;
}

static void
number_events(void)
{
	events_made = events_running = 0;
	gpd_driver.cuEventCreate = numbered_event_create;
	gpd_driver.cuEventQuery = numbered_event_query;
}

static void *
launcher_run(void *arg)
{
	uint64_t since = gp_now_ns();

	launcher = arg;
	launch(launcher->fake);
	launcher->waited_ns = gp_now_ns() - since;
	atomic_store(&launcher->launched, true);
	return NULL;
}

/* Waits until the launch has polled twice more, or is done. */
static void
launcher_await_poll(struct launcher *waiting)
{
	uint32_t before = atomic_load(&waiting->polls);

	while (!atomic_load(&waiting->launched) && atomic_load(&waiting->polls) - before < 2)
		usleep(100);
}

/* Returns when the launch waits. */
static void
launcher_start(struct launcher *started, struct fake_session *fake)
{
	*started = (struct launcher){ .fake = fake };
	assert_int_equal(pthread_create(&started->thread, NULL, launcher_run, started), 0);
	launcher_await_poll(started);
	assert_false(atomic_load(&started->launched));
}

static void
launcher_join(struct launcher *joined)
{
	pthread_join(joined->thread, NULL);
	assert_true(joined->launched);
}

/* Advances the clock, by no more than the launches notice, until they are done. */
static void
launchers_pass_time(struct launcher *launchers, size_t count)
{
	bool all = false;

	while (!all) {
		gp_clock_advance(STEP_NS);
		all = true;
		for (size_t i = 0; i < count; i++) {
			launcher_await_poll(&launchers[i]);
			all = all && atomic_load(&launchers[i].launched);
		}
	}
	for (size_t i = 0; i < count; i++)
		launcher_join(&launchers[i]);
}

/* The kernels of `one` do not end, and `two` has waited for them for its whole time. */
static void
make_one_linger(void)
{
	struct launcher second;

	launch(&one);
	launcher_start(&second, &two);
	launchers_pass_time(&second, 1);
}

static void
end_all_kernels(struct fake_session *owner)
{
	atomic_store(&events_running, 0);
	gpd_print_flush(&owner->session);
}

TEST(a_launch_waits_for_one_limit_however_many_sessions_precede_it)
{
	struct launcher waiting[2];

	number_events();
	make_one_linger();
	launcher_start(&waiting[0], &three);
	launcher_start(&waiting[1], &four);
	launchers_pass_time(waiting, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(waiting[i].waited_ns >= gpd_print_limit_ns);
		assert_true(waiting[i].waited_ns < gpd_print_limit_ns + 10 * STEP_NS);
	}
	end_all_kernels(&four);
	end_all_kernels(&three);
}

TEST(sessions_of_a_tenant_whose_kernels_linger_follow_those_of_other_tenants)
{
	struct launcher same, other;

	number_events();
	one.session.account.entry->tenant = four.session.account.entry->tenant = 1;
	make_one_linger();
	launcher_start(&same, &four);
	launcher_start(&other, &three);
	/* The kernels of `two` end. */
	atomic_fetch_and(&events_running, ~(UINT32_C(1) << 2));
	launcher_join(&other);
	assert_false(atomic_load(&same.launched));
	/* Those of `three`. */
	atomic_fetch_and(&events_running, ~(UINT32_C(1) << 3));
	launcher_join(&same);
	end_all_kernels(&four);
}

int
main(void)
{
	int report = dup(STDOUT_FILENO);
	FILE *kept;
	int failed;

	/* CMocka reports on the standard output, which the units under test take away. */
	kept = fdopen(report, "w");
	if (gpd_print_start() || !kept)
		return 1;
	stdout = kept;
	failed = unit_tests_run(NULL, NULL);
	fflush(kept);
	return failed;
}
