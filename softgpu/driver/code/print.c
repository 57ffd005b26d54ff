/* SPDX-License-Identifier: Apache-2.0 */
/* Output of kernels. */
#include "softgpu/driver/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	char *text;
	size_t len;
	size_t room;
} printed = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
gs_print_append(void *unused, const char *text, size_t len)
{
	pthread_mutex_lock(&printed.lock);
	if (printed.len + len > printed.room) {
		size_t room = (printed.len + len) * 2;
		char *larger = realloc(printed.text, room);

		if (!larger) {
			pthread_mutex_unlock(&printed.lock);
			return;
		}
		printed.text = larger;
		printed.room = room;
	}
	memcpy(printed.text + printed.len, text, len);
	printed.len += len;
	len = printed.len;
	pthread_mutex_unlock(&printed.lock);
	/* A GPU's buffer would lose the oldest lines here. */
	if (len > GS_PRINT_MAX)
		gs_print_flush();
}

static void
write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void
gs_print_error(void *unused, const char *text, size_t len)
{
	write_all(STDERR_FILENO, text, len);
}

void
gs_print_flush(void)
{
	pthread_mutex_lock(&printed.lock);
	write_all(STDOUT_FILENO, printed.text, printed.len);
	printed.len = 0;
	pthread_mutex_unlock(&printed.lock);
}
