/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with its filter works, and cannot reach beyond its sessions. */
#include "server/worker/syscall_filter.h"
#include "tests/test.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

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
};

static int
check_forbidden(void)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		const long *a = forbidden[i].arguments;
		long r = syscall(forbidden[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);

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

/* Calls of a worker that serves sessions. */
static int
check_allowed(void)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), fds[2];
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	if (netlink < 0 || page == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) ||
	    socket(AF_UNIX, SOCK_STREAM, 0) < 0)
		return 3;
	if (kill(getpid(), 0) || pthread_kill(pthread_self(), 0))
		return 4;
	child = fork();
	if (child == 0)
		_exit(execl("/bin/true", "true", NULL) == -1 && errno == EPERM ? 0 : 1);
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 5;
}

static int
run_filtered(void)
{
	pthread_t thread;

	if (sem_init(&installed, 0, 0) || pthread_create(&thread, NULL, check_in_thread, NULL))
		return 6;
	if (gpd_syscall_filter_install(GPD_SYSCALL_FILTER_ON))
		return 7;
	/* The thread is older than the filter. */
	(void)sem_post(&installed);
	(void)pthread_join(thread, NULL);
	return thread_result ? 10 + thread_result : check_forbidden() ? 8 : check_allowed();
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
	return gpd_syscall_filter_install(GPD_SYSCALL_FILTER_LOG) ||
	       syscall(SYS_execve, NULL, NULL, NULL) != -1 || errno == EPERM ||
	       kill(getppid(), 0) != 0;
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
