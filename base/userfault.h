/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userfaultfd(2) for shared memory that is mapped twice: faults at one mapping are reported to a
 * descriptor and resolved with the pages that the other mapping has.
 *
 * Needs Linux 5.19: minor faults and write protection of shared memory.  No privilege is needed for
 * faults of instructions; faults within system calls are reported as well where the kernel allows
 * it (CAP_SYS_PTRACE, /dev/userfaultfd, vm.unprivileged_userfaultfd).
 *
 * Errors: -errno.
 * Units: bytes; whole pages.
 * Threads: any.
 */
#ifndef GP_USERFAULT_H
#define GP_USERFAULT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One page fault, whose thread waits until its page is mapped or woken. */
struct gp_userfault_event {
	uint64_t address;
	int thread; /* as gettid() in the thread */
	bool is_write;
};
#define GP_USERFAULT_EVENTS 16

/* A descriptor, closed on exec; *in_kernel_p: faults within system calls are reported, too. */
GP_MUST_CHECK int gp_userfault_open(bool *in_kernel_p);

/* From now on all faults in [base, base + size) are reported, also of pages that the memory does
 * not have yet; what is mapped stays mapped. */
GP_MUST_CHECK int gp_userfault_register(int fd, uint64_t base, uint64_t size);
/* Of memory that is not shared: faults at pages that it lacks. */
GP_MUST_CHECK int gp_userfault_register_missing(int fd, uint64_t base, uint64_t size);
/* The kernel resolves faults by itself again. */
GP_MUST_CHECK int gp_userfault_unregister(int fd, uint64_t base, uint64_t size);

/* Maps the pages that the memory has, and leaves those that are mapped already.  -EFAULT: the
 * memory lacks one. */
GP_MUST_CHECK int gp_userfault_map(int fd, uint64_t base, uint64_t size);
/* The same, write-protected.  bytes: the pages, in the other mapping.  1: they are writable
 * instead, as one has been written meanwhile. */
GP_MUST_CHECK int gp_userfault_map_protected(int fd, uint64_t base, uint64_t size,
					     const void *bytes);
/* Changes what is mapped, and what will be. */
GP_MUST_CHECK int gp_userfault_protect(int fd, uint64_t base, uint64_t size, bool is_writable);
/* Threads that wait for a page here try again. */
int gp_userfault_wake(int fd, uint64_t base, uint64_t size);
/* For tests: pages are mapped as before Linux 6.4, where they are writable for a moment. */
void gp_userfault_set_emulate_old(bool is_old);
/* A page of zeros in memory that is not shared. */
int gp_userfault_map_zeros(int fd, uint64_t base, uint64_t size);

/* Waits for the next faults; the number of events, at most GP_USERFAULT_EVENTS. */
GP_MUST_CHECK int gp_userfault_read(int fd, struct gp_userfault_event *events);

#endif /* GP_USERFAULT_H */
