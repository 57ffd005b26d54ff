/* SPDX-License-Identifier: Apache-2.0 */
/* What the user is told of a call that is not supported. */
#include "client/base/log.h"
#include "client/entry/entry.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MULTICAST,
	PROBED,
};

const struct gpc_entry_info gpc_entries[] = {
	[MULTICAST] = { "cuMulticastCreate", NULL, NULL, false, true,
			"copies through host memory" },
	[PROBED] = { "cuCheckpointProcessLock", NULL, NULL, false, false, NULL },
};
const size_t gpc_entry_count = sizeof(gpc_entries) / sizeof(gpc_entries[0]);

/* Calls it twice, in a process of its own with this GPUPOOL_LOG; what that says on stderr. */
static void
call_twice(size_t entry, const char *log, char *said, size_t room)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), status;
	ssize_t size;
	pid_t child;

	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		CUresult first, second;

		dup2(fd, STDERR_FILENO);
		setenv("GPUPOOL_LOG", log, 1);
		first = gpc_unsupported(entry);
		second = gpc_unsupported(entry);
		_exit(first != CUDA_ERROR_NOT_SUPPORTED || second != first);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	size = pread(fd, said, room - 1, 0);
	assert_true(size >= 0);
	said[size] = '\0';
	close(fd);
}

static void
the_user_is_told_once_and_of_another_way(void **state)
{
	const char *begin = "gpupool: cuMulticastCreate is not supported; instead: ";
	char said[1024];

	(void)state;
	call_twice(MULTICAST, "", said, sizeof(said));
	assert_int_equal(strncmp(said, begin, strlen(begin)), 0);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void
a_user_who_wants_quiet_has_it(void **state)
{
	char said[1024];

	(void)state;
	call_twice(MULTICAST, "quiet", said, sizeof(said));
	assert_string_equal(said, "");
}

static void
nothing_is_said_of_what_programs_only_probe(void **state)
{
	char said[1024];

	(void)state;
	call_twice(PROBED, "", said, sizeof(said));
	assert_string_equal(said, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_user_is_told_once_and_of_another_way),
		cmocka_unit_test(a_user_who_wants_quiet_has_it),
		cmocka_unit_test(nothing_is_said_of_what_programs_only_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
