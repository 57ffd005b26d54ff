/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's command line: rejected options and their messages. */
#include "tests/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[8192];

/* Reports of the leak checker about threads that it could not stop in time, or that were about to
 * end. They do not concern the daemon, whose leaks it still reports. */
static void
leave_out_notes(char *text)
{
	static const char error[] = "==ERROR: ";

	while (*text) {
		char *end = text + strcspn(text, "\n");
		size_t digits = strncmp(text, "==", 2) == 0 ? strspn(text + 2, "0123456789") : 0;
		char *rest = text + 2 + digits;

		end += *end == '\n';
		if (digits && strncmp(rest, "==", 2) == 0 &&
		    strncmp(rest, error, strlen(error)) != 0)
			memmove(text, end, strlen(end) + 1);
		else
			text = end;
	}
}

/* Returns the exit status of the daemon with these options. Its output is in `output`. */
static int
run(const char *arguments)
{
	const char *program = getenv("GP_TEST_GPUPOOLD");
	char command[1024];
	size_t size;
	FILE *pipe;
	int status;

	assert_non_null(program);
	/* Nothing is read of the machine's own pool. Root's daemon stays root: where there is a
	 * user gpupool it would say that it becomes that. */
	assert_int_equal(setenv("CONFIGURATION_DIRECTORY", "/nonexistent", 1), 0);
	assert_int_equal(setenv("GPUPOOL_CACHE_DIR", "", 1), 0);
	snprintf(command, sizeof(command), "exec timeout 30 %s --admin-socket off%s %s 2>&1",
		 program, geteuid() == 0 ? " --user root" : "", arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	size = fread(output, 1, sizeof(output) - 1, pipe);
	output[size] = 0;
	leave_out_notes(output);
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Refused with one line that says this. */
#define assert_refused(arguments, text)                                                            \
	do {                                                                                       \
		assert_int_equal(run(arguments), 1);                                               \
		if (!strstr(output, text))                                                         \
			fail_msg("\"%s\" is not in \"%s\"", text, output);                         \
		if (strchr(output, '\n') != output + strlen(output) - 1)                           \
			fail_msg("not one line: \"%s\"", output);                                  \
		assert_int_equal(strncmp(output, "gpupoold: ", 10), 0);                            \
	} while (0)

UNIT_TEST(what_the_leak_checker_could_not_do_is_left_out)
{
	char text[] = "==7==Unable to get registers from thread 8.\n"
		      "gpupoold: ==7==Unable to get registers from thread 1.\n"
		      "==31415==Unable to get registers from thread 31416.\n"
		      "==31415==Running thread 31417 was not suspended. False leaks are possible.\n"
		      "=================================================================\n"
		      "==31415==ERROR: LeakSanitizer: detected memory leaks\n"
		      "==31415==Unable to get registers from thread 31418.";

	leave_out_notes(text);
	assert_string_equal(text,
			    "gpupoold: ==7==Unable to get registers from thread 1.\n"
			    "=================================================================\n"
			    "==31415==ERROR: LeakSanitizer: detected memory leaks\n");
}

UNIT_TEST(a_port_in_use_is_named)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char arguments[64], expected[128];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	snprintf(arguments, sizeof(arguments), "--listen 127.0.0.1:%d", ntohs(address.sin_port));
	snprintf(expected, sizeof(expected),
		 "gpupoold: cannot listen on tcp://127.0.0.1:%d: Address already in use",
		 ntohs(address.sin_port));
	assert_refused(arguments, expected);
	close(fd);
}

UNIT_TEST(an_unknown_scheme_is_named)
{
	assert_refused("--listen smoke://127.0.0.1", "unknown scheme \"smoke\"");
}

UNIT_TEST(an_address_to_listen_on_has_no_device)
{
	assert_refused("--listen tls://0.0.0.0:4833/1",
		       "\"tls://0.0.0.0:4833/1\": an address to listen on has no device, /1: ");
	assert_refused("--listen 127.0.0.1:0 --listen 127.0.0.1/0", "has no device, /0: ");
}

UNIT_TEST(an_address_for_all_needs_the_word_insecure)
{
	assert_refused("--listen 0.0.0.0:0", "--insecure");
	assert_refused("--listen '[::]:0'", "--insecure");
	assert_refused("--listen '*:0'", "--insecure");
	/* With it, the driver is the next thing that is wrong. */
	assert_int_equal(
		run("--listen 0.0.0.0:0 --insecure --log-level warning --driver /dev/null"), 1);
	assert_non_null(strstr(output, "warning: tcp://0.0.0.0:0 accepts any client"));
}

UNIT_TEST(a_file_that_is_no_driver_is_named)
{
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere/libcuda.so.1",
		       "gpupoold: /nowhere/libcuda.so.1: cannot open shared object file: ");
	assert_refused("--listen 127.0.0.1:0 --driver libm.so.6",
		       "libm.so.6: not a CUDA driver library: it has no cuInit");
}

UNIT_TEST(values_are_checked)
{
	static const char *const wrong[] = { "--max-sessions 0",         "--max-sessions many",
					     "--max-sessions 5x",        "--log-level loud",
					     "--listen 127.0.0.1:99999", "surplus" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(run(wrong[i]), 1);
		assert_int_equal(strncmp(output, "gpupoold: ", 10), 0);
	}
}

UNIT_TEST(a_variable_that_makes_no_sense_is_named)
{
	static const char *const wrong[] = { "abc", "-1", "30s", " 5", "0", "86401", "1.5" };
	char text[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)setenv("GPUPOOL_TIMEOUT", wrong[i], 1);
		(void)snprintf(text, sizeof(text),
			       "GPUPOOL_TIMEOUT=%s: not a whole number of seconds from 1 to 86400; "
			       "use 30, or leave it out",
			       wrong[i]);
		assert_refused("--listen 127.0.0.1:0 --driver /nowhere", text);
	}
	/* With these, the driver is the next thing that is wrong. */
	(void)setenv("GPUPOOL_TIMEOUT", "1", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere", "/nowhere: cannot open");
	(void)setenv("GPUPOOL_TIMEOUT", "", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere", "/nowhere: cannot open");
	(void)unsetenv("GPUPOOL_TIMEOUT");
	(void)setenv("GPUPOOL_STALL_MS", "5s", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere",
		       "GPUPOOL_STALL_MS=5s: not a number of milliseconds; use GPUPOOL_TIMEOUT, in "
		       "seconds");
	(void)unsetenv("GPUPOOL_STALL_MS");
}

UNIT_TEST(a_number_of_launchers_that_makes_no_sense_is_named)
{
	(void)setenv("GPUPOOL_LAUNCHERS", "all", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere",
		       "GPUPOOL_LAUNCHERS=all: not a number of threads");
	(void)setenv("GPUPOOL_LAUNCHERS", "3", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere", "/nowhere: cannot open");
	(void)unsetenv("GPUPOOL_LAUNCHERS");
}

UNIT_TEST(a_window_that_cannot_be_is_refused)
{
	static const char *const wrong[] = { "abc",           "-1",
					     "16777215",      "1G",
					     "4398046511105", "99999999999999999999" };
	char text[96];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)setenv("GPUPOOL_WINDOW_SIZE", wrong[i], 1);
		(void)snprintf(text, sizeof(text),
			       "GPUPOOL_WINDOW_SIZE=%s: not a number of bytes from", wrong[i]);
		assert_refused("--listen 127.0.0.1:0 --driver /nowhere", text);
	}
	(void)setenv("GPUPOOL_WINDOW_SIZE", "300000001", 1);
	assert_refused("--listen 127.0.0.1:0 --driver /nowhere", "/nowhere: cannot open");
	(void)unsetenv("GPUPOOL_WINDOW_SIZE");
}

/* Each option starts in one of the option columns, and its description in column 29 or later. */
static void
assert_laid_out(void)
{
	const char *line = strstr(output, "\n\n");

	assert_non_null(line);
	for (line += 2; *line != '\n'; line = strchr(line, '\n') + 1) {
		size_t blanks = strspn(line, " ");

		if (blanks != 29 && !(blanks == 2 && strncmp(line + 4, ", --", 4) == 0) &&
		    !(blanks == 6 && strncmp(line + 6, "--", 2) == 0))
			fail_msg("a line that stands nowhere: \"%.79s\"", line);
		assert_non_null(strchr(line, '\n'));
	}
}

UNIT_TEST(help_and_version_are_there)
{
	assert_int_equal(run("--help"), 0);
	assert_non_null(strstr(output, "\n  -l, --listen=ADDRESS       Listen on"));
	assert_non_null(strstr(output, "REMOTE_GPU"));
	assert_null(strstr(output, "worker-fd"));
	assert_laid_out();
	assert_int_equal(run("--version"), 0);
	assert_int_equal(strncmp(output, "gpupoold ", 9), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
