/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
/* Numbers from here on are calls of the x32 ABI. */
#define NUMBERS_END 0x40000000u
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define NUMBERS_END UINT32_MAX
#endif

/* Calls that a worker never needs once it serves sessions. */
static const uint32_t forbidden[] = {
	/* Other programs. NVIDIA's driver starts nvidia-modprobe to make a missing file of a
	 * device, which needs root: also for contexts that are created later the files exist. */
	SYS_execve,
	SYS_execveat,
/* Other processes. The leak check of the address sanitizer attaches to its own threads. */
#ifndef __SANITIZE_ADDRESS__
	SYS_ptrace,
#endif
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_kcmp,
#ifdef SYS_pidfd_open
	SYS_pidfd_open,
#endif
#ifdef SYS_pidfd_getfd
	SYS_pidfd_getfd,
#endif
#ifdef SYS_pidfd_send_signal
	SYS_pidfd_send_signal,
#endif
#ifdef SYS_process_madvise
	SYS_process_madvise,
#endif
#ifdef SYS_process_mrelease
	SYS_process_mrelease,
#endif
	SYS_tkill, /* the C library uses tgkill() */
/* A child would survive the worker's end (setsid()); see code_check_clone(). */
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
#endif
	/* File systems and namespaces. */
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_unshare,
	SYS_setns,
#ifdef SYS_open_tree
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
#endif
#ifdef SYS_mount_setattr
	SYS_mount_setattr,
#endif
	SYS_open_by_handle_at,
	SYS_swapon,
	SYS_swapoff,
	SYS_quotactl,
	SYS_acct,
	/* The kernel itself. */
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
	SYS_reboot,
	SYS_syslog,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
/* Its requests are not subject to this filter. */
#ifdef SYS_io_uring_setup
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
#endif
#ifdef SYS_iopl
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
#endif
};

/* Calls that send a signal to the process in their first argument. */
static const uint32_t signals[] = { SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo,
				    SYS_rt_tgsigqueueinfo };

/*
 * Calls that change the limits or the scheduling of the process or thread in their first argument:
 * allowed for 0, the calling thread, and for the worker's process ID, which is also that of its
 * main thread. A filter cannot distinguish the IDs of other threads from those of other processes,
 * so that pthread_setaffinity_np() and pthread_setschedparam() fail with EPERM, except in the main
 * thread for itself, and a thread cannot be created with such an attribute. Threads inherit what
 * their creator has. This program uses none of these; for NVIDIA's driver they are optimizations.
 */
static const uint32_t scheduling[] = {
	SYS_prlimit64,      SYS_sched_setaffinity, SYS_sched_setscheduler,
	SYS_sched_setparam, SYS_sched_setattr,
};

/* IOPRIO_WHO_PROCESS of ioprio_set(2), which older headers lack. */
#define IO_PRIORITY_PROCESS 1

/* Calls of the same kind whose first argument is the type of the ID in the second. */
static const struct {
	uint32_t call, process; /* process: type of a process or thread */
} priorities[] = {
	{ SYS_setpriority, PRIO_PROCESS },
	{ SYS_ioprio_set, IO_PRIORITY_PROCESS },
};

/*
 * Requests by which a descriptor sends a signal to a process when it is ready, and one that types
 * on the terminal (an interrupt, or a command of the user's shell). O_ASYNC is refused as well,
 * because the owner of a terminal is by default its foreground process group.
 *
 * F_SETSIG is also the mark of private_fd.h, which is lost: descriptors that the worker opens are
 * not marked, and every open one is assumed to be the worker's. No other code in it closes them.
 */
static const uint32_t fcntl_requests[] = { F_SETOWN, F_SETOWN_EX, F_SETSIG };
static const uint32_t ioctl_requests[] = { FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSTI };

/* Families of sockets. Netlink: libibverbs lists its devices. */
static const uint32_t families[] = { AF_UNIX, AF_NETLINK };

/* Flags of clone() for which unshare() is forbidden. */
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* Flags of clone() of which one is required. The leak check of the address sanitizer uses a child
 * without CLONE_THREAD; fork() has neither flag. */
#ifdef __SANITIZE_ADDRESS__
#define THREADS (CLONE_THREAD | CLONE_UNTRACED)
#else
#define THREADS CLONE_THREAD
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* Instructions per element of the tables, and at most 64 more. */
#define CODE_MAX                                                                                   \
	(2 * (COUNT(forbidden) + COUNT(families) + COUNT(fcntl_requests) +                         \
	      COUNT(ioctl_requests)) +                                                             \
	 5 * COUNT(signals) + 7 * COUNT(scheduling) + 10 * COUNT(priorities) + 64)

struct code {
	struct sock_filter instructions[CODE_MAX];
	unsigned short count;
	uint32_t refusal; /* result of a forbidden call */
};

static void
code_add(struct code *code, struct sock_filter instruction)
{
	code->instructions[code->count++] = instruction;
}

static void
code_load(struct code *code, size_t offset)
{
	code_add(code, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void
code_return(struct code *code, uint32_t result)
{
	code_add(code, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

/* Skips `count` instructions unless the loaded value is `value`. */
static void
code_skip_unless(struct code *code, uint32_t value, uint8_t count)
{
	code_add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
}

/* Offset of the lower half of an argument; both architectures are little-endian. */
static size_t
argument_offset(int index)
{
	return offsetof(struct seccomp_data, args) + (size_t)index * sizeof(uint64_t);
}

/* Skips the next instruction if the loaded value has none of these bits. */
static void
code_skip_unless_any(struct code *code, uint32_t bits)
{
	code_add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
}

/* Allows the call if this argument is one of the values, and returns the refusal otherwise. Adds
 * 2 * count + 2 instructions. */
static void
code_allow_values(struct code *code, int index, const uint32_t *values, size_t count)
{
	code_load(code, argument_offset(index));
	for (size_t i = 0; i < count; i++) {
		code_skip_unless(code, values[i], 1);
		code_return(code, SECCOMP_RET_ALLOW);
	}
	code_return(code, code->refusal);
}

/* If the loaded number is this call, allows it if its first argument is one of the values, and
 * returns the refusal otherwise. */
static void
code_allow_arguments(struct code *code, uint32_t call, const uint32_t *values, size_t count)
{
	code_skip_unless(code, call, (uint8_t)(2 * count + 2));
	code_allow_values(code, 0, values, count);
}

/* If the loaded number is this call, returns the refusal unless its first argument is `type`, and
 * its second one of the values. */
static void
code_check_priority(struct code *code, uint32_t call, uint32_t type, const uint32_t *values,
		    size_t count)
{
	code_skip_unless(code, call, (uint8_t)(2 * count + 5));
	code_load(code, argument_offset(0));
	code_add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, type, 1, 0));
	code_return(code, code->refusal);
	code_allow_values(code, 1, values, count);
}

/* Loads the second argument, and returns the refusal if it is one of the requests. Adds
 * 2 * count + 1 instructions. */
static void
code_refuse_requests(struct code *code, const uint32_t *requests, size_t count)
{
	code_load(code, argument_offset(1));
	for (size_t i = 0; i < count; i++) {
		code_skip_unless(code, requests[i], 1);
		code_return(code, code->refusal);
	}
}

static void
code_check_requests(struct code *code)
{
	code_skip_unless(code, SYS_ioctl, (uint8_t)(2 * COUNT(ioctl_requests) + 2));
	code_refuse_requests(code, ioctl_requests, COUNT(ioctl_requests));
	code_return(code, SECCOMP_RET_ALLOW);
	code_skip_unless(code, SYS_fcntl, (uint8_t)(2 * COUNT(fcntl_requests) + 6));
	code_refuse_requests(code, fcntl_requests, COUNT(fcntl_requests));
	code_skip_unless(code, F_SETFL, 3);
	code_load(code, argument_offset(2));
	code_skip_unless_any(code, O_ASYNC);
	code_return(code, code->refusal);
	code_return(code, SECCOMP_RET_ALLOW);
}

/* Only threads can be created. A filter cannot read the flags of clone3(), for which the C library
 * falls back to clone(). */
static void
code_check_clone(struct code *code)
{
	code_skip_unless(code, SYS_clone, 6);
	code_load(code, argument_offset(0));
	code_skip_unless_any(code, NAMESPACES);
	code_return(code, code->refusal);
	code_skip_unless_any(code, THREADS);
	code_return(code, SECCOMP_RET_ALLOW);
	code_return(code, code->refusal);
#ifdef SYS_clone3
	code_skip_unless(code, SYS_clone3, 1);
	code_return(code, code->refusal == SECCOMP_RET_LOG ? SECCOMP_RET_ALLOW
							   : SECCOMP_RET_ERRNO | ENOSYS);
#endif
}

static void
code_generate(struct code *code)
{
	const uint32_t self = (uint32_t)getpid(), own[] = { 0, self };

	/* Calls of another architecture have other numbers. */
	code_load(code, offsetof(struct seccomp_data, arch));
	code_add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
	code_return(code, code->refusal);
	code_load(code, offsetof(struct seccomp_data, nr));
	code_add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NUMBERS_END, 0, 1));
	code_return(code, code->refusal);
	for (size_t i = 0; i < COUNT(forbidden); i++) {
		code_skip_unless(code, forbidden[i], 1);
		code_return(code, code->refusal);
	}
	code_check_clone(code);
	code_allow_arguments(code, SYS_socket, families, COUNT(families));
	for (size_t i = 0; i < COUNT(signals); i++)
		code_allow_arguments(code, signals[i], &self, 1);
	for (size_t i = 0; i < COUNT(scheduling); i++)
		code_allow_arguments(code, scheduling[i], own, COUNT(own));
	for (size_t i = 0; i < COUNT(priorities); i++)
		code_check_priority(code, priorities[i].call, priorities[i].process, own,
				    COUNT(own));
	code_check_requests(code);
	code_return(code, SECCOMP_RET_ALLOW);
}

int
gpd_syscall_filter_install(enum gpd_syscall_filter_mode mode)
{
	struct code code = { .refusal = mode == GPD_SYSCALL_FILTER_LOG
						? SECCOMP_RET_LOG
						: SECCOMP_RET_ERRNO | EPERM };
	struct sock_fprog program = { .filter = code.instructions };
	long r;

	if (mode == GPD_SYSCALL_FILTER_OFF)
		return 0;
	code_generate(&code);
	program.len = code.count;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul))
		return -errno;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	/* A positive result is a thread that has another filter. */
	return r == 0 ? 0 : r > 0 ? -EBUSY : -errno;
}
