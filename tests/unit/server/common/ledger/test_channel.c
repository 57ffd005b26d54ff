/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/channel.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
	struct gpd_channel a, b;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[2];

	if (!f || gpd_channel_pair(fds) || gpd_channel_init(&f->a, fds[0]) ||
	    gpd_channel_init(&f->b, fds[1]))
		return -1;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	gpd_channel_fini(&f->a);
	gpd_channel_fini(&f->b);
	free(f);
	return 0;
}

#define CHANNEL_TEST(test) UNIT_TEST_WITH(test, setup, teardown)

CHANNEL_TEST(a_message_arrives_whole_with_its_descriptor)
{
	struct fixture *f = *state;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_LANE, .session = 7 };
	struct gpd_channel_message message;
	int pipe_fds[2];
	char text[16], byte = 0;

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(gpd_channel_send(&f->a, &header, "tcp", 3, pipe_fds[1]), 0);
	close(pipe_fds[1]);
	assert_int_equal(gpd_channel_recv(&f->b, true, &message), 0);
	assert_int_equal(message.header.type, GPD_CHANNEL_LANE);
	assert_int_equal(message.header.session, 7);
	assert_string_equal(gpd_channel_text(&message, text, sizeof(text)), "tcp");
	assert_true(message.fd >= 0);
	assert_true(fcntl(message.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(message.fd, "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(message.fd);
	close(pipe_fds[0]);
}

CHANNEL_TEST(an_empty_channel_is_a_timeout_and_a_closed_one_the_end)
{
	struct fixture *f = *state;
	struct gpd_channel_message message;

	assert_int_equal(gpd_channel_recv(&f->b, false, &message), GP_E_TIMEOUT);
	close(f->a.fd);
	f->a.fd = -1;
	assert_int_equal(gpd_channel_recv(&f->b, false, &message), GP_E_EOF);
}

CHANNEL_TEST(a_large_message_arrives_and_a_larger_one_is_refused)
{
	struct fixture *f = *state;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_READY };
	struct gpd_channel_message message;
	size_t size = GPD_CHANNEL_MAX - sizeof(header);
	char *data = calloc(1, size + 1);

	data[size - 1] = 'z';
	assert_int_equal(gpd_channel_send(&f->a, &header, data, size, -1), 0);
	assert_int_equal(gpd_channel_recv(&f->b, true, &message), 0);
	assert_int_equal(message.size, size);
	assert_memory_equal(message.data, data, size);
	assert_int_equal(gpd_channel_send(&f->a, &header, data, size + 1, -1), -EMSGSIZE);
	free(data);
}

CHANNEL_TEST(what_a_slow_reader_does_not_take_is_kept_in_order)
{
	struct fixture *f = *state;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_CLOSE };
	struct gpd_channel_message message;
	uint64_t taken = 0;
	char text[512] = "";

	for (uint64_t i = 0; i < 5000; i++) {
		header.session = i;
		assert_int_equal(gpd_channel_post(&f->a, &header, text, sizeof(text), -1), 0);
	}
	assert_non_null(f->a.queue);
	while (taken < 5000) {
		assert_int_equal(gpd_channel_flush(&f->a), 0);
		while (gpd_channel_recv(&f->b, false, &message) == 0)
			assert_int_equal(message.header.session, taken++);
	}
	assert_null(f->a.queue);
}

CHANNEL_TEST(a_reader_that_has_stopped_is_noticed)
{
	struct fixture *f = *state;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_CLOSE };
	char text[512] = "";
	int r = 0;

	for (int i = 0; i < 20000 && r == 0; i++)
		r = gpd_channel_post(&f->a, &header, text, sizeof(text), -1);
	assert_int_equal(r, -ENOBUFS);
}

CHANNEL_TEST(a_posted_descriptor_is_closed_here_in_any_case)
{
	struct fixture *f = *state;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_LANE };
	int fd = dup(0);

	close(f->b.fd);
	f->b.fd = -1;
	assert_int_not_equal(gpd_channel_post(&f->a, &header, NULL, 0, fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

UNIT_TEST_MAIN(NULL, NULL)
