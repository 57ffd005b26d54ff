/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Limit for /proc/self/environ; the kernel rarely accepts more in execve(). */
#define ENVIRON_BLOCK_MAX ((size_t)4 << 20)

static char *environ_block;
static size_t environ_block_size;

/* Returns the number of bytes read. The buffer has room for a terminating NUL, which the caller
 * adds. */
static size_t
file_read(int fd, char **data_p)
{
	size_t size = 0, room = 0;

	while (room < ENVIRON_BLOCK_MAX) {
		size_t more = room ? room : (size_t)16 << 10;
		char *data = realloc(*data_p, room + more + 1);
		ssize_t n = 1;

		if (!data)
			break;
		*data_p = data;
		room += more;
		while (size < room && (n = read(fd, data + size, room - size)) > 0)
			size += (size_t)n;
		if (n <= 0)
			break;
	}
	return size;
}

static void
block_read(void)
{
	int fd = getauxval(AT_SECURE) ? -1 : open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	environ_block_size = file_read(fd, &environ_block);
	if (environ_block)
		environ_block[environ_block_size] = '\0';
	(void)close(fd);
}

const char *
gp_environment_find(const char *strings, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < size; at += strlen(strings + at) + 1) {
		if (strncmp(strings + at, name, length) == 0 && strings[at + length] == '=')
			return strings + at + length + 1;
	}
	return NULL;
}

const char *
gp_environment_get(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *value = getenv(name);

	if (value)
		return value;
	(void)pthread_once(&once, block_read);
	return environ_block ? gp_environment_find(environ_block, environ_block_size, name) : NULL;
}
