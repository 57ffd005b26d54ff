/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A longer queue means that the other end has stopped reading. */
#define QUEUED_MAX 8192

struct gpd_channel_queued {
	struct gpd_channel_queued *next;
	struct gpd_channel_header header;
	int fd;
	size_t size;
	uint8_t data[];
};

int
gpd_channel_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ? -errno : 0;
}

int
gpd_channel_init(struct gpd_channel *channel, int fd)
{
	/* One message with its header must fit, independent of the system's default buffer size. */
	int room = 4 * (int)GPD_CHANNEL_MAX;

	*channel = (struct gpd_channel){ .fd = fd };
	channel->queue_end = &channel->queue;
	channel->buffer = malloc(GPD_CHANNEL_MAX);
	if (!channel->buffer)
		return -ENOMEM;
	pthread_mutex_init(&channel->send_lock, NULL);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return 0;
}

/* Closes the queued copy of the descriptor and wipes the data, which may contain a session's key or
 * ticket. */
static void
queue_drop_first(struct gpd_channel *channel)
{
	struct gpd_channel_queued *queued = channel->queue;

	channel->queue = queued->next;
	if (!channel->queue)
		channel->queue_end = &channel->queue;
	channel->queued--;
	if (queued->fd >= 0)
		close(queued->fd);
	explicit_bzero(queued->data, queued->size);
	free(queued);
}

void
gpd_channel_fini(struct gpd_channel *channel)
{
	while (channel->queue)
		queue_drop_first(channel);
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = -1;
	free(channel->buffer);
	channel->buffer = NULL;
}

static int
message_send(struct gpd_channel *channel, const struct gpd_channel_header *header, const void *data,
	     size_t size, int fd, int flags)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)header, .iov_len = sizeof(*header) },
		{ .iov_base = (void *)data, .iov_len = size },
	};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = size ? 2 : 1 };
	ssize_t done;

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	do
		done = sendmsg(channel->fd, &message, flags | MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : 0;
}

int
gpd_channel_send(struct gpd_channel *channel, const struct gpd_channel_header *header,
		 const void *data, size_t size, int fd)
{
	int r;

	if (size > GPD_CHANNEL_MAX - sizeof(*header))
		return -EMSGSIZE;
	pthread_mutex_lock(&channel->send_lock);
	r = message_send(channel, header, data, size, fd, 0);
	pthread_mutex_unlock(&channel->send_lock);
	return r;
}

static bool
would_block(int r)
{
	/* ETOOMANYREFS: too many descriptors are in flight; it clears as the receiver reads
	 * them. */
	return r == -EAGAIN || r == -ENOBUFS || r == -ETOOMANYREFS;
}

static int
queue_push(struct gpd_channel *channel, const struct gpd_channel_header *header, const void *data,
	   size_t size, int fd)
{
	struct gpd_channel_queued *queued;

	if (channel->queued >= QUEUED_MAX)
		return -ENOBUFS;
	queued = malloc(sizeof(*queued) + size);
	if (!queued)
		return -ENOMEM;
	queued->next = NULL;
	queued->header = *header;
	queued->fd = fd;
	queued->size = size;
	if (size)
		memcpy(queued->data, data, size);
	*channel->queue_end = queued;
	channel->queue_end = &queued->next;
	channel->queued++;
	return 0;
}

int
gpd_channel_post(struct gpd_channel *channel, const struct gpd_channel_header *header,
		 const void *data, size_t size, int fd)
{
	int r = -EAGAIN;

	if (size > GPD_CHANNEL_MAX - sizeof(*header))
		r = -EMSGSIZE;
	else if (!channel->queue)
		r = message_send(channel, header, data, size, fd, MSG_DONTWAIT);
	if (would_block(r)) {
		r = queue_push(channel, header, data, size, fd);
		if (r == 0)
			return 0;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int
gpd_channel_flush(struct gpd_channel *channel)
{
	while (channel->queue) {
		struct gpd_channel_queued *queued = channel->queue;
		int r = message_send(channel, &queued->header, queued->data, queued->size,
				     queued->fd, MSG_DONTWAIT);

		if (would_block(r))
			return 0;
		if (r)
			return r;
		queue_drop_first(channel);
	}
	return 0;
}

int
gpd_channel_recv(struct gpd_channel *channel, bool wait, struct gpd_channel_message *message)
{
	struct gpd_channel_header header;
	struct iovec iov[2] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = channel->buffer, .iov_len = GPD_CHANNEL_MAX },
	};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		/* For one: the kernel closes others. CMSG_SPACE() has room for two. */
		.msg_controllen = CMSG_LEN(sizeof(int))
	};
	struct cmsghdr *cmsg;
	ssize_t got;
	int fd = -1;

	do
		got = recvmsg(channel->fd, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return GP_E_TIMEOUT;
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return GP_E_EOF;
	if (got < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	if ((size_t)got < sizeof(header) || (msg.msg_flags & MSG_TRUNC)) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	*message = (struct gpd_channel_message){
		.header = header,
		.data = channel->buffer,
		.size = (size_t)got - sizeof(header),
		.fd = fd,
	};
	return 0;
}

const char *
gpd_channel_text(const struct gpd_channel_message *message, char *text, size_t size)
{
	snprintf(text, size, "%.*s", (int)message->size, (const char *)message->data);
	return text;
}
