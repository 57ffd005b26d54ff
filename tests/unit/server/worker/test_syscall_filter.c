/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with its filter works, and cannot reach beyond its sessions. */
#include "server/worker/syscall_filter.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* IOPRIO_WHO_PROCESS and IOPRIO_WHO_PGRP of ioprio_set(2), which older headers lack. */
#define IO_PRIORITY_PROCESS 1
#define IO_PRIORITY_GROUP 2
/* An argument that stands for the process ID of the parent, which has the same user. */
#define PARENT LONG_MIN

/* Arguments that change nothing. */
static cpu_set_t all_cpus;
static struct sched_param priority;
static struct {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
} attributes = { .size = sizeof(attributes) };

/* Forbidden calls with arguments that are valid or harmless. */
static const struct {
	const char *name;
	long number;
	long arguments[6];
} forbidden[] = {
	{ "execve", SYS_execve, { 0 } },
	{ "execveat", SYS_execveat, { -1 } },
#ifndef __SANITIZE_ADDRESS__
	{ "ptrace", SYS_ptrace, { PTRACE_ATTACH, -1 } },
#endif
	{ "process_vm_readv", SYS_process_vm_readv, { -1 } },
	{ "process_vm_writev", SYS_process_vm_writev, { -1 } },
	{ "mount", SYS_mount, { 0 } },
	{ "umount2", SYS_umount2, { 0 } },
	{ "pivot_root", SYS_pivot_root, { 0 } },
	{ "unshare", SYS_unshare, { 0 } },
	{ "setns", SYS_setns, { -1 } },
	{ "clone into a user namespace", SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
	{ "init_module", SYS_init_module, { 0 } },
	{ "finit_module", SYS_finit_module, { -1 } },
	{ "delete_module", SYS_delete_module, { 0 } },
	{ "kexec_load", SYS_kexec_load, { 0, 0, 0, -1 } },
	{ "bpf", SYS_bpf, { BPF_MAP_CREATE } },
	{ "perf_event_open", SYS_perf_event_open, { 0 } },
	{ "keyctl", SYS_keyctl, { -1 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 0 } },
	{ "socket of IPv4", SYS_socket, { AF_INET, SOCK_STREAM } },
	{ "socket of IPv6", SYS_socket, { AF_INET6, SOCK_STREAM } },
	{ "socket of packets", SYS_socket, { AF_PACKET, SOCK_RAW } },
	{ "kill of all", SYS_kill, { -1, 0 } },
	{ "tgkill of another", SYS_tgkill, { 1, 1, 0 } },
	{ "rt_sigqueueinfo of another", SYS_rt_sigqueueinfo, { 1, 0, 0 } },
	{ "kcmp", SYS_kcmp, { -1, -1 } },
#ifdef SYS_pidfd_open
	{ "pidfd_open", SYS_pidfd_open, { PARENT } },
#endif
#ifdef SYS_pidfd_getfd
	{ "pidfd_getfd", SYS_pidfd_getfd, { -1 } },
#endif
#ifdef SYS_pidfd_send_signal
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { -1 } },
#endif
#ifdef SYS_process_madvise
	{ "process_madvise", SYS_process_madvise, { -1 } },
#endif
#ifdef SYS_process_mrelease
	{ "process_mrelease", SYS_process_mrelease, { -1 } },
#endif
	{ "prlimit64 of another", SYS_prlimit64, { PARENT, RLIMIT_NOFILE } },
	{ "sched_setaffinity of another",
	  SYS_sched_setaffinity,
	  { PARENT, sizeof(all_cpus), (long)&all_cpus } },
	{ "sched_setscheduler of another",
	  SYS_sched_setscheduler,
	  { PARENT, SCHED_OTHER, (long)&priority } },
	{ "sched_setparam of another", SYS_sched_setparam, { PARENT, (long)&priority } },
	{ "sched_setattr of another", SYS_sched_setattr, { PARENT, (long)&attributes } },
	{ "setpriority of another", SYS_setpriority, { PRIO_PROCESS, PARENT } },
	{ "setpriority of a group", SYS_setpriority, { PRIO_PGRP } },
	{ "setpriority of a user", SYS_setpriority, { PRIO_USER } },
	{ "ioprio_set of another", SYS_ioprio_set, { IO_PRIORITY_PROCESS, PARENT } },
	{ "ioprio_set of a group", SYS_ioprio_set, { IO_PRIORITY_GROUP } },
	{ "F_SETOWN", SYS_fcntl, { -1, F_SETOWN, PARENT } },
	{ "F_SETOWN_EX", SYS_fcntl, { -1, F_SETOWN_EX } },
	{ "F_SETSIG", SYS_fcntl, { -1, F_SETSIG, SIGKILL } },
	{ "O_ASYNC", SYS_fcntl, { -1, F_SETFL, O_ASYNC | O_NONBLOCK } },
	{ "FIOSETOWN", SYS_ioctl, { -1, FIOSETOWN } },
	{ "SIOCSPGRP", SYS_ioctl, { -1, SIOCSPGRP } },
	{ "FIOASYNC", SYS_ioctl, { -1, FIOASYNC } },
	{ "TIOCSTI", SYS_ioctl, { -1, TIOCSTI } },
	{ "clone of a process", SYS_clone, { SIGCHLD } },
	{ "clone of a process with its memory", SYS_clone, { CLONE_VM | CLONE_VFORK | SIGCHLD } },
#ifdef SYS_fork
	{ "fork", SYS_fork, { 0 } },
	{ "vfork", SYS_vfork, { 0 } },
#endif
};

static int
check_forbidden(void)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		long a[6], r;

		for (int j = 0; j < 6; j++)
			a[j] = forbidden[i].arguments[j] == PARENT ? getppid()
								   : forbidden[i].arguments[j];
		r = syscall(forbidden[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);

		if (r != -1 || errno != EPERM) {
			(void)fprintf(stderr, "%s: %ld, errno %d\n", forbidden[i].name, r, errno);
			return 1;
		}
	}
	return kill(getppid(), 0) == 0 || errno != EPERM ? 2 : 0;
}

static sem_t installed;
static int thread_result;

static void *
check_in_thread(void *arg)
{
	(void)sem_wait(&installed);
	thread_result = check_forbidden();
	return arg;
}

static void *
return_argument(void *arg)
{
	return arg;
}

/* Calls of the worker about itself. */
static int
check_allowed_of_itself(void)
{
	struct rlimit files;
	cpu_set_t cpus;
	pthread_t thread;

	if (kill(getpid(), 0) || pthread_kill(pthread_self(), 0))
		return 4;
	if (getrlimit(RLIMIT_NOFILE, &files) || prlimit(getpid(), RLIMIT_NOFILE, &files, NULL))
		return 5;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setaffinity(getpid(), sizeof(cpus), &cpus))
		return 6;
	if (setpriority(PRIO_PROCESS, 0, 19) || setpriority(PRIO_PROCESS, (id_t)getpid(), 19))
		return 7;
	if (pthread_create(&thread, NULL, return_argument, NULL) || pthread_join(thread, NULL))
		return 8;
	return 0;
}

/* Calls of a worker that serves sessions. */
static int
check_allowed(void)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), fds[2], unread;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (netlink < 0 || page == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) ||
	    socket(AF_UNIX, SOCK_STREAM, 0) < 0)
		return 2;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) || fcntl(fds[0], F_DUPFD_CLOEXEC, 3) < 0 ||
	    ioctl(fds[0], FIONREAD, &unread))
		return 3;
	return check_allowed_of_itself();
}

static int
run_filtered(void)
{
	pthread_t thread;

	memset(&all_cpus, 0xff, sizeof(all_cpus));
	if (sem_init(&installed, 0, 0) || pthread_create(&thread, NULL, check_in_thread, NULL))
		return 20;
	if (gpd_syscall_filter_install(GPD_SYSCALL_FILTER_ON))
		return 21;
	/* The thread is older than the filter. */
	(void)sem_post(&installed);
	(void)pthread_join(thread, NULL);
	return thread_result ? 30 + thread_result : check_forbidden() ? 22 : check_allowed();
}

static int
run_unfiltered(void)
{
	return gpd_syscall_filter_install(GPD_SYSCALL_FILTER_OFF) ||
	       syscall(SYS_execve, NULL, NULL, NULL) != -1 || errno == EPERM;
}

static int
run_logged(void)
{
	int status;
	pid_t child;

	if (gpd_syscall_filter_install(GPD_SYSCALL_FILTER_LOG) ||
	    syscall(SYS_execve, NULL, NULL, NULL) != -1 || errno == EPERM ||
	    kill(getppid(), 0) != 0 || fcntl(-1, F_SETSIG, SIGIO) != -1 || errno != EBADF)
		return 1;
	child = fork();
	if (child == 0)
		_exit(0);
	return waitpid(child, &status, 0) == child ? status : 2;
}

static int
in_child(int (*function)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(function());
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

UNIT_TEST(forbidden_calls_fail_in_every_thread_and_others_work)
{
	assert_int_equal(in_child(run_filtered), 0);
}

UNIT_TEST(without_the_filter_calls_reach_the_kernel)
{
	assert_int_equal(in_child(run_unfiltered), 0);
}

UNIT_TEST(logged_calls_are_executed)
{
	assert_int_equal(in_child(run_logged), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
