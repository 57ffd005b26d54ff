/* SPDX-License-Identifier: Apache-2.0 */
/* The message about a call that is not supported. */
#include "client/base/log.h"
#include "client/entry/entry.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdbool.h>
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

static size_t the_entry;

static bool
call_entry(void)
{
	return gpc_unsupported(the_entry) == CUDA_ERROR_NOT_SUPPORTED;
}

static bool
ask_as_cupti_13(void)
{
	CUuuid table = { "\x2c\x8e\x0a\xd8\x07\x10\xab\x4e\x90\xdd\x54\x71\x9f\xe5\xf7\x4b" };

	gpc_unsupported_table(&table);
	return true;
}

static bool
ask_as_cupti_12(void)
{
	CUuuid table = { "\x7c\xb6\x3f\x9b\x9c\xa4\x8e\x42\xa4\x84\xbe\xb6\x6e\x6a\xed\x7f" };

	gpc_unsupported_table(&table);
	return true;
}

/* A runtime's, which does without. */
static bool
ask_as_the_runtime(void)
{
	CUuuid table = { "\xf8\xcf\xf9\x51\x21\x46\x8b\x4e\xb9\xe2\xfb\x46\x9e\x7c\x0d\xd9" };

	gpc_unsupported_table(&table);
	return true;
}

static bool
begin_injected(void)
{
	gpc_unsupported_injection();
	return true;
}

/* Does it twice, in a process of its own with this GPUPOOL_LOG; what that says on stderr. */
static void
do_twice(bool (*it)(void), const char *log, char *said, size_t room)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), status;
	ssize_t size;
	pid_t child;

	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(fd, STDERR_FILENO);
		setenv("GPUPOOL_LOG", log, 1);
		_exit(!it() || !it());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	size = pread(fd, said, room - 1, 0);
	assert_true(size >= 0);
	said[size] = '\0';
	close(fd);
}

static void
call_twice(size_t entry, const char *log, char *said, size_t room)
{
	the_entry = entry;
	do_twice(call_entry, log, said, room);
}

UNIT_TEST(the_user_is_told_once_and_of_another_way)
{
	const char *begin = "gpupool: cuMulticastCreate is not supported; instead: ";
	char said[1024];

	call_twice(MULTICAST, "", said, sizeof(said));
	assert_int_equal(strncmp(said, begin, strlen(begin)), 0);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

UNIT_TEST(a_user_who_wants_quiet_has_it)
{
	char said[1024];

	call_twice(MULTICAST, "quiet", said, sizeof(said));
	assert_string_equal(said, "");
}

UNIT_TEST(nothing_is_said_of_what_programs_only_probe)
{
	char said[1024];

	call_twice(PROBED, "", said, sizeof(said));
	assert_string_equal(said, "");
}

UNIT_TEST(a_user_of_a_tool_is_told_once_of_the_timeline)
{
	static bool (*const asks[])(void) = { ask_as_cupti_12, ask_as_cupti_13, begin_injected };
	char said[1024];

	setenv("CUDA_INJECTION64_PATH", "/tool.so", 1);
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		do_twice(asks[i], "", said, sizeof(said));
		assert_non_null(strstr(said, "CUPTI"));
		assert_non_null(strstr(said, "GPUPOOL_TRACE="));
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
		do_twice(asks[i], "quiet", said, sizeof(said));
		assert_string_equal(said, "");
	}
	unsetenv("CUDA_INJECTION64_PATH");
}

UNIT_TEST(without_a_tool_nothing_is_said_of_tools)
{
	char said[1024];

	do_twice(ask_as_the_runtime, "", said, sizeof(said));
	assert_string_equal(said, "");
	do_twice(begin_injected, "", said, sizeof(said));
	assert_string_equal(said, "");
}

UNIT_TEST_MAIN(NULL, NULL)
