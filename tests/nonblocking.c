/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions below take the place of the C library's, also for calls from shared libraries
 * such as OpenSSL, because the dynamic linker searches the program first. Calls inside the C
 * library itself are not seen, so its functions that block are listed by name.
 */
#include "server/common/base/nonblocking.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Thread_local unsigned int section_depth;

void
gpd_nonblocking_begin(void)
{
	section_depth++;
}

void
gpd_nonblocking_end(void)
{
	section_depth--;
}

unsigned int
gpd_nonblocking_leave(void)
{
	unsigned int depth = section_depth;

	section_depth = 0;
	return depth;
}

void
gpd_nonblocking_reenter(unsigned int depth)
{
	section_depth = depth;
}

static void
check(bool may_block, const char *name)
{
	static const char text[] = " can block in a section that must not block\n";

	if (!may_block || !section_depth)
		return;
	section_depth = 0;
	(void)!write(STDERR_FILENO, "ERROR: NonblockingSanitizer: ", 29);
	(void)!write(STDERR_FILENO, name, strlen(name));
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

static bool
is_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* Of files on a disk the time is the disk's, and no peer's. */
static bool
is_blocking_stream(int fd)
{
	struct stat status;

	return section_depth && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) &&
	       !S_ISDIR(status.st_mode) && !S_ISCHR(status.st_mode) && is_blocking(fd);
}

/* NEXT(function, (parameters' types), ...): calls the C library's, or a sanitizer's before it. */
#define NEXT(type, name, parameters, ...)                                                          \
	({                                                                                         \
		static type(*next) parameters;                                                     \
		if (!next)                                                                         \
			*(void **)&next = dlsym(RTLD_NEXT, #name);                                 \
		next(__VA_ARGS__);                                                                 \
	})

/* Weak: a test may have one of its own. */
#define REPLACES __attribute__((visibility("default"), weak))

/* Streams. */

REPLACES ssize_t
read(int fd, void *data, size_t size)
{
	check(is_blocking_stream(fd), "read");
	return NEXT(ssize_t, read, (int, void *, size_t), fd, data, size);
}

REPLACES ssize_t
write(int fd, const void *data, size_t size)
{
	check(is_blocking_stream(fd), "write");
	return NEXT(ssize_t, write, (int, const void *, size_t), fd, data, size);
}

REPLACES ssize_t
recv(int fd, void *data, size_t size, int flags)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "recv");
	return NEXT(ssize_t, recv, (int, void *, size_t, int), fd, data, size, flags);
}

REPLACES ssize_t
recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address, socklen_t *length)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "recvfrom");
	return NEXT(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *),
		    fd, data, size, flags, address, length);
}

REPLACES ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "recvmsg");
	return NEXT(ssize_t, recvmsg, (int, struct msghdr *, int), fd, message, flags);
}

REPLACES ssize_t
send(int fd, const void *data, size_t size, int flags)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "send");
	return NEXT(ssize_t, send, (int, const void *, size_t, int), fd, data, size, flags);
}

REPLACES ssize_t
sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *address,
       socklen_t length)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "sendto");
	return NEXT(ssize_t, sendto,
		    (int, const void *, size_t, int, const struct sockaddr *, socklen_t), fd, data,
		    size, flags, address, length);
}

REPLACES ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
	check(!(flags & MSG_DONTWAIT) && is_blocking(fd), "sendmsg");
	return NEXT(ssize_t, sendmsg, (int, const struct msghdr *, int), fd, message, flags);
}

REPLACES int
connect(int fd, const struct sockaddr *address, socklen_t length)
{
	check(is_blocking(fd), "connect");
	return NEXT(int, connect, (int, const struct sockaddr *, socklen_t), fd, address, length);
}

REPLACES int
accept(int fd, struct sockaddr *address, socklen_t *length)
{
	check(is_blocking(fd), "accept");
	return NEXT(int, accept, (int, struct sockaddr *, socklen_t *), fd, address, length);
}

REPLACES int
accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	check(is_blocking(fd), "accept4");
	return NEXT(int, accept4, (int, struct sockaddr *, socklen_t *, int), fd, address, length,
		    flags);
}

/* Waits. */

REPLACES int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	check(timeout_ms != 0, "poll");
	return NEXT(int, poll, (struct pollfd *, nfds_t, int), fds, count, timeout_ms);
}

REPLACES int
ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	check(!timeout || timeout->tv_sec || timeout->tv_nsec, "ppoll");
	return NEXT(int, ppoll,
		    (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *), fds,
		    count, timeout, mask);
}

REPLACES int
select(int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
{
	check(!timeout || timeout->tv_sec || timeout->tv_usec, "select");
	return NEXT(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *), count, in,
		    out, other, timeout);
}

REPLACES int
epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
	check(timeout_ms != 0, "epoll_wait");
	return NEXT(int, epoll_wait, (int, struct epoll_event *, int, int), fd, events, count,
		    timeout_ms);
}

REPLACES int
nanosleep(const struct timespec *time, struct timespec *left)
{
	check(true, "nanosleep");
	return NEXT(int, nanosleep, (const struct timespec *, struct timespec *), time, left);
}

REPLACES int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	check(true, "clock_nanosleep");
	return NEXT(int, clock_nanosleep,
		    (clockid_t, int, const struct timespec *, struct timespec *), clock, flags,
		    time, left);
}

REPLACES int
usleep(useconds_t usec)
{
	check(true, "usleep");
	return NEXT(int, usleep, (useconds_t), usec);
}

REPLACES int
pthread_join(pthread_t thread, void **result)
{
	check(true, "pthread_join");
	return NEXT(int, pthread_join, (pthread_t, void **), thread, result);
}

REPLACES pid_t
waitpid(pid_t pid, int *status, int options)
{
	check(!(options & WNOHANG), "waitpid");
	return NEXT(pid_t, waitpid, (pid_t, int *, int), pid, status, options);
}

/* Files. */

REPLACES int
flock(int fd, int operation)
{
	check(!(operation & (LOCK_NB | LOCK_UN)), "flock");
	return NEXT(int, flock, (int, int), fd, operation);
}

REPLACES int
fsync(int fd)
{
	check(true, "fsync");
	return NEXT(int, fsync, (int), fd);
}

REPLACES int
fdatasync(int fd)
{
	check(true, "fdatasync");
	return NEXT(int, fdatasync, (int), fd);
}

/* Name lookups, for which the C library may contact servers. */

REPLACES int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	check(true, "getaddrinfo");
	return NEXT(int, getaddrinfo,
		    (const char *, const char *, const struct addrinfo *, struct addrinfo **), host,
		    service, hints, list);
}

REPLACES int
getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size,
	    char *service, socklen_t service_size, int flags)
{
	check((host && !(flags & NI_NUMERICHOST)) || (service && !(flags & NI_NUMERICSERV)),
	      "getnameinfo");
	return NEXT(int, getnameinfo,
		    (const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int),
		    address, length, host, host_size, service, service_size, flags);
}

REPLACES struct passwd *
getpwnam(const char *name)
{
	check(true, "getpwnam");
	return NEXT(struct passwd *, getpwnam, (const char *), name);
}

REPLACES struct passwd *
getpwuid(uid_t user)
{
	check(true, "getpwuid");
	return NEXT(struct passwd *, getpwuid, (uid_t), user);
}

REPLACES struct group *
getgrnam(const char *name)
{
	check(true, "getgrnam");
	return NEXT(struct group *, getgrnam, (const char *), name);
}

REPLACES struct group *
getgrgid(gid_t group)
{
	check(true, "getgrgid");
	return NEXT(struct group *, getgrgid, (gid_t), group);
}

REPLACES int
getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
	check(true, "getgrouplist");
	return NEXT(int, getgrouplist, (const char *, gid_t, gid_t *, int *), user, group, groups,
		    count);
}
