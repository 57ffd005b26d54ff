/* SPDX-License-Identifier: Apache-2.0 */
/* Which state of a worker may come after which, and which processes are workers. */
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A row for each state that there may be, a column for each that may follow, in the enum's order:
 * starting, serving, busy, stuck, spare, retired, own, abandoned, lost, ending. */
static const char *const follows[GPD_WORKER_STATES] = {
	[GPD_WORKER_STARTING] = ".+..+.++++",  [GPD_WORKER_SERVING] = "..+..+..++",
	[GPD_WORKER_BUSY] = ".+.+.+..++",      [GPD_WORKER_WEDGED] = ".+...+..++",
	[GPD_WORKER_SPARE] = ".+...++.++",     [GPD_WORKER_RETIRED] = "........++",
	[GPD_WORKER_DEDICATED] = ".......+++", [GPD_WORKER_ABANDONED] = "........++",
	[GPD_WORKER_LOST] = ".........+",      [GPD_WORKER_ENDING] = "..........",
};

UNIT_TEST(only_what_may_follow_follows)
{
	for (int from = 0; from < GPD_WORKER_STATES; from++) {
		assert_int_equal(strlen(follows[from]), GPD_WORKER_STATES);
		for (int to = 0; to < GPD_WORKER_STATES; to++) {
			struct gpd_worker_process child = {
				.state = (enum gpd_worker_process_state)from, .state_ms = 1
			};
			bool may = follows[from][to] == '+';

			assert_int_equal(gpd_worker_process_set_state(
						 &child, (enum gpd_worker_process_state)to),
					 may);
			assert_int_equal(child.state, may ? to : from);
			assert_int_equal(child.state_ms != 1, may);
		}
	}
}

/* However a worker begins, it can end. */
UNIT_TEST(every_state_but_the_last_can_end)
{
	for (int from = 0; from < GPD_WORKER_ENDING; from++) {
		struct gpd_worker_process child = { .state = (enum gpd_worker_process_state)from };

		assert_true(gpd_worker_process_set_state(&child, GPD_WORKER_ENDING));
	}
}

static int
follow(struct gpd_worker_process *process, int device, enum gpd_context_step step, uint64_t bytes)
{
	const struct gpd_channel_context context = { .step = (uint32_t)step, .bytes = bytes };
	const struct gpd_channel_message message = {
		.header = { .type = GPD_CHANNEL_CONTEXT, .result = device },
		.data = &context,
		.size = sizeof(context),
	};

	return gpd_worker_process_follow_context(process, &message);
}

UNIT_TEST(contexts_of_a_worker_are_followed)
{
	struct gpd_worker_process process = { .devices = 7, .contexts = 1 };

	assert_int_equal(follow(&process, 0, GPD_CONTEXT_STARTS, 0), 0);
	assert_int_equal(process.creating, 1);
	assert_int_equal(follow(&process, 0, GPD_CONTEXT_CREATED, 500), 0);
	assert_int_equal(process.creating, 0);
	assert_int_equal(process.context_bytes[0], 500);
	/* Two at once, of which one fails. */
	(void)follow(&process, 1, GPD_CONTEXT_STARTS, 0);
	(void)follow(&process, 2, GPD_CONTEXT_STARTS, 0);
	assert_int_equal(process.contexts, 7);
	assert_int_equal(process.creating, 6);
	(void)follow(&process, 1, GPD_CONTEXT_FAILED, 9);
	(void)follow(&process, 2, GPD_CONTEXT_CREATED, 7);
	assert_int_equal(process.contexts, 5);
	assert_int_equal(process.creating, 0);
	assert_int_equal(process.context_bytes[1], 0);
	assert_int_equal(process.context_bytes[2], 7);
}

UNIT_TEST(a_report_of_a_context_that_is_not_valid_changes_nothing)
{
	static const struct gpd_channel_context context = { .step = GPD_CONTEXT_CREATED,
							    .bytes = 5 };
	struct gpd_worker_process process = { 0 };
	struct gpd_channel_message message = { .data = &context, .size = sizeof(context) - 1 };

	assert_int_equal(follow(&process, -1, GPD_CONTEXT_CREATED, 5), -1);
	assert_int_equal(follow(&process, GPD_LEDGER_DEVICES, GPD_CONTEXT_CREATED, 5), -1);
	assert_int_equal(follow(&process, 0, (enum gpd_context_step)(GPD_CONTEXT_FAILED + 1), 5),
			 -1);
	assert_int_equal(gpd_worker_process_follow_context(&process, &message), -1);
	assert_int_equal(process.contexts, 0);
	assert_int_equal(process.context_bytes[0], 0);
}

/* The worker is this program, see main(). */
static struct gpd_worker_process *
start(void)
{
	struct gpd_worker_start start = { .ledger_fd = open("/dev/null", O_RDWR | O_CLOEXEC) };
	struct gpd_worker_process *process = gpd_worker_process_start(&start);

	assert_non_null(process);
	close(start.ledger_fd);
	return process;
}

static void
reap(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

UNIT_TEST(processes_that_were_started_are_the_daemons_own_and_others_are_not)
{
	struct gpd_worker_process *workers[3];
	pid_t pids[3], other;

	for (int i = 0; i < 3; i++) {
		workers[i] = start();
		pids[i] = workers[i]->pid;
	}
	other = fork();
	if (other == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	/* In the order of the list, and in another one. */
	for (int i = 0; i < 3; i++) {
		static const int order[] = { 1, 2, 0 };

		assert_true(gpd_worker_process_is_own(pids[order[i]]));
		reap(pids[order[i]]);
		gpd_worker_process_destroy(workers[order[i]]);
		for (int j = i + 1; j < 3; j++)
			assert_true(gpd_worker_process_is_own(pids[order[j]]));
		assert_false(gpd_worker_process_is_own(other));
		assert_false(gpd_worker_process_is_own(getpid()));
		assert_false(gpd_worker_process_is_own(0));
	}
	/* A connection can outlive its process. */
	reap(other);
	assert_true(gpd_worker_process_is_own(other));
}

int
main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "--worker-fd") != 0)
		return unit_tests_run(NULL, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
}
