/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoolctl: a command, which is the first line of the input, and the answer that a daemon gives
 * it, which is the rest.  The first byte of the line is the format; an answer that begins with a
 * byte of 0xff is sent after it unchanged, any other with its size before it.  Commands that wait
 * for a daemon are left out.
 */
#include "ctl/command.h"
#include "protocol/admin_messages.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORDS_MAX 16
#define LINE_MAX_SIZE 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int listener = -1;
/* Of the current command; the answering thread may be late with it. */
static uint8_t reply[65536];
static size_t reply_size;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
clean_up(void)
{
	(void)unlink(address.sun_path);
}

/* Receives the request and sends the reply. */
static void *
serve(void *arg)
{
	uint8_t request[65536], header[GP_ADMIN_HEADER_SIZE];

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		(void)!recv(fd, request, sizeof(request), 0);
		gp_admin_put_size(header, reply_size);
		if (reply_size && reply[0] == 0xff)
			(void)!send(fd, reply + 1, reply_size - 1, MSG_NOSIGNAL);
		else if (send(fd, header, sizeof(header), MSG_NOSIGNAL) > 0)
			(void)!send(fd, reply, reply_size, MSG_NOSIGNAL);
		(void)close(fd);
	}
	return NULL;
}

static void
set_up(void)
{
	pthread_t thread;

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/gpupool-ctl-%d", (int)getpid());
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	      listen(listener, 16) == 0);
	atexit(clean_up);
	check(pthread_create(&thread, NULL, serve, NULL) == 0);
	/* The output is discarded. */
	check(freopen("/dev/null", "w", stdout) != NULL);
	stderr = fopen("/dev/null", "w");
	check(stderr != NULL);
}

static ctl_command *
find(const char *word)
{
	static const struct {
		const char *word;
		ctl_command *command;
	} commands[] = {
		{ "client", ctl_session }, { "session", ctl_session }, { "device", ctl_device },
		{ "status", ctl_status },  { "tenant", ctl_tenant },   { "worker", ctl_worker },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(word, commands[i].word) == 0)
			return commands[i].command;
	}
	return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	struct ctl ctl = { .socket = address.sun_path };
	char line[LINE_MAX_SIZE], *words[WORDS_MAX], *rest, *word;
	ctl_command *command;
	int count = 0;

	if (listener < 0)
		set_up();
	if (!end || end == data || (size_t)(end - data) >= sizeof(line))
		return 0;
	ctl.format = data[0] % 3;
	snprintf(line, sizeof(line), "%.*s", (int)(end - data - 1), (const char *)data + 1);
	reply_size = (size_t)(data + size - end - 1);
	if (reply_size > sizeof(reply))
		reply_size = sizeof(reply);
	memcpy(reply, end + 1, reply_size);
	for (rest = line; count < WORDS_MAX && (word = strtok_r(rest, " \t", &rest)); count++)
		words[count] = word;
	command = count ? find(words[0]) : NULL;
	if (command)
		(void)command(&ctl, count - 1, words + 1);
	(void)fflush(stdout);
	return 0;
}
