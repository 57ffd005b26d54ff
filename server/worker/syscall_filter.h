/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter of system calls (seccomp) for a worker that has started: a client that takes over a worker
 * by a fault in this program, the driver or a compiler cannot start programs or processes, open
 * network sockets, attach to or signal other processes, change their limits or scheduling, or use
 * rarely tested parts of the kernel.
 *
 * A forbidden call fails with EPERM, so that a library that tries it continues without. The table
 * in syscall_filter.c lists the calls; everything else is allowed. Sockets are limited to the
 * families that lanes and libibverbs need; signals, limits and scheduling to the worker itself;
 * and new processes to threads.
 */
#ifndef GPD_SYSCALL_FILTER_H
#define GPD_SYSCALL_FILTER_H

/* Effect of a forbidden call. */
enum gpd_syscall_filter_mode {
	GPD_SYSCALL_FILTER_ON,  /* it fails with EPERM */
	GPD_SYSCALL_FILTER_LOG, /* it is executed, and the kernel logs it (audit) */
	GPD_SYSCALL_FILTER_OFF, /* no filter is installed */
};

/* Installs the filter in all threads of the process, irrevocably; threads and processes that they
 * start later inherit it. Called once. Returns 0; or a negative errno, and there is no filter. */
int gpd_syscall_filter_install(enum gpd_syscall_filter_mode mode);

#endif /* GPD_SYSCALL_FILTER_H */
